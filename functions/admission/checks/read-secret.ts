// What does a Secret hold, for whoever asks?
import type { KubeObject } from '#core/ports/cluster.ts';
import type { ReadSecret, SecretData } from '#core/rules/secret-entries.ts';
import { isMap } from '#crds/shapes.ts';
import type { Lookup } from '../lookup.ts';

/** Undefined where it is missing, or not theirs to read. Who may read it may be told the names of its entries. */
export async function readSecret(namespace: string, name: string, lookup: Lookup): Promise<ReadSecret> {
  return toRead(await lookup.secret(namespace, name));
}

export const toRead = (secret: KubeObject | undefined): ReadSecret =>
  secret && { data: isMap(secret.data) ? (secret.data as SecretData) : {}, listed: true };
