// How do the cluster's own controllers act? Like everybody, through admission, under a name of their own.
import type { KubeObject } from '../object.ts';
import { isRefusal, type Outcome } from '../refusal.ts';
import type { Resource } from '../resources/resource.ts';
import type { ApiRequest, Verb } from '../serve/request.ts';

export type Acting = {
  readonly as: string;
  readonly verb: Verb;
  readonly resource: Resource;
  readonly object: KubeObject;
  readonly subresource?: string;
};

export function requestOf({ as, verb, resource, object, subresource }: Acting): ApiRequest {
  return {
    verb,
    resource,
    namespace: object.metadata.namespace,
    name: object.metadata.name,
    subresource,
    query: new URLSearchParams({ fieldManager: as }),
    contentType: 'application/json',
    accept: '',
    body: Buffer.alloc(0),
    user: {
      username: `system:serviceaccount:kube-system:${as}`,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
    },
    dryRun: false,
    fieldValidation: 'Ignore',
    warn: () => {},
    signal: new AbortController().signal,
    deadline: Number.POSITIVE_INFINITY,
  };
}

/** What has gone already is as good as done; any other refusal is tried again later. */
export function done(outcome: Outcome<unknown>): void {
  if (!isRefusal(outcome)) return;
  const { code, message } = outcome.refusal;
  if (code !== 404) throw new Error(message);
}
