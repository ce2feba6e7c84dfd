// What does an API server send to a webhook?

/** An AdmissionReview that creates this object, as somebody who may do everything. */
export function reviewOf(object: object, more: object = {}): object {
  const { apiVersion, kind, metadata } = object as {
    apiVersion: string;
    kind: string;
    metadata: { name: string; namespace: string };
  };
  const [group, version] = apiVersion.split('/');
  const resource = `${kind.toLowerCase()}s`;
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'review-1',
      kind: { group, version, kind },
      resource: { group, version, resource },
      requestKind: { group, version, kind },
      requestResource: { group, version, resource },
      name: metadata.name,
      namespace: metadata.namespace,
      operation: 'CREATE',
      userInfo: { username: 'admin', groups: ['system:masters', 'system:authenticated'] },
      object,
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
      ...more,
    },
  };
}
