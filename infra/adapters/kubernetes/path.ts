// Under which address does an API server keep an object?

import type { Resource, Selection } from '#core/ports/cluster.ts';
import { FIELD_MANAGER } from '../../../crds/group.ts';

/** Whether an object could have this name at all. `''` would turn a GET into a LIST, `..` into another address. */
export const isNameable = (name: string): boolean => name !== '' && name !== '.' && name !== '..' && !/[/%]/.test(name);

/** Where the resources of a group are listed. */
export const versionPath = ({ group, version }: Resource): string =>
  group === '' ? `/api/${version}` : `/apis/${group}/${version}`;

export function collectionPath(resource: Resource, namespace: string | undefined): string {
  const root = versionPath(resource);
  const { plural } = resource;
  return namespace === undefined
    ? `${root}/${plural}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

export const objectPath = (resource: Resource, namespace: string | undefined, name: string): string =>
  `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;

/** What every write says: whose fields these are. */
export const AS_US = `fieldManager=${FIELD_MANAGER}`;

export function listQuery({ fieldSelector, labelSelector }: Selection, limit: number, token: string): string {
  const query = new URLSearchParams({ limit: String(limit) });
  if (fieldSelector !== undefined) query.set('fieldSelector', fieldSelector);
  if (labelSelector !== undefined) query.set('labelSelector', labelSelector);
  if (token !== '') query.set('continue', token);
  return query.toString();
}
