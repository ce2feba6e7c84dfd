// What is in a Secret? Read by name only, in the namespaces that refer to it (DESIGN 6).
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { PresentSecret } from '../world.ts';

/** Base64 entries as stored. */
export function dataOf(secret: KubeObject): Readonly<Record<string, string>> {
  // The API server guarantees the shape of a Secret's data.
  return (secret.data ?? {}) as Record<string, string>;
}

export function toSecretView(secret: KubeObject, hash: Hash): PresentSecret {
  const { metadata } = secret;
  const data = new Map(Object.entries(dataOf(secret)).map(([entry, value]) => [entry, decode(value)]));
  const value = data.get('key');
  return {
    state: 'present',
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    owners: metadata.ownerReferences ?? [],
    data,
    ...(value === undefined || value === '' ? {} : { hash: hash(value) }),
  };
}

export function decode(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
}

export function encode(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
