// Rules of the API server for one object: normalisation before it is stored, and validation.
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import { isRecord, sameJson } from './merge-patch.ts';

type Metadata = KubeObject['metadata'];

/** The object as stored: fields that only the API server writes stay, and empty lists go, as on a real one. */
export function keepOwn(wanted: Metadata, before: Metadata): Metadata {
  const { deletionTimestamp: _deletion, generation: _generation, ...rest } = wanted;
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, generation } = before;
  const own = { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, generation };
  return {
    ...withoutEmptyLists(rest),
    ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)),
  } as Metadata;
}

export function withoutEmptyLists(metadata: Metadata): Metadata {
  const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => !isEmpty(value))) as unknown as Metadata;
}

/** The validations that our code could violate. */
export function invalid(resource: Resource, object: KubeObject, before?: KubeObject): string | undefined {
  const { metadata } = object;
  if (!/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(metadata.name)) {
    return `metadata.name: Invalid value: "${metadata.name}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'`;
  }
  const added = (metadata.finalizers ?? []).filter(
    (finalizer) => !(before?.metadata.finalizers ?? []).includes(finalizer),
  );
  if (before?.metadata.deletionTimestamp !== undefined && added.length > 0) {
    return 'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted';
  }
  for (const value of Object.values(metadata.labels ?? {})) {
    if (!/^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$/.test(value))
      return `metadata.labels: Invalid value: "${value}"`;
  }
  const frozen = before?.immutable === true && !sameJson(object.data, before.data);
  if (frozen) return 'data: Forbidden: field is immutable when `immutable` is set';
  if (resource.kind === 'Event' && isRecord(object.involvedObject)) {
    const { namespace } = object.involvedObject;
    if (namespace !== metadata.namespace && !(namespace === undefined && metadata.namespace === 'default')) {
      return 'involvedObject.namespace: Invalid value: does not match event.namespace';
    }
  }
  return undefined;
}

/** As stored: plain JSON, `stringData` folded into `data`, deeply frozen so that no caller can change the store. */
export function settle(object: KubeObject): KubeObject {
  const stored = JSON.parse(JSON.stringify(object)) as KubeObject;
  const { stringData, ...rest } = stored;
  if (object.kind !== 'Secret' || !isRecord(stringData)) return freeze(stored);
  const encoded = Object.entries(stringData).map(([entry, text]) => [
    entry,
    Buffer.from(String(text), 'utf8').toString('base64'),
  ]);
  const data = isRecord(rest.data) ? rest.data : {};
  return freeze({ ...rest, data: { ...data, ...Object.fromEntries(encoded) } } as KubeObject);
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze);
  return value;
}
