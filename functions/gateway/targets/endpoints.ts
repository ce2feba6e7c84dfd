// Endpoints of model entries: address and credentials. An endpoint is created again when a mounted value has changed.

import { err, ok, type Result } from '#core/failure/result.ts';
import type { SnapshotEntry } from '#core/models/snapshot.ts';
import type { Credentials } from '#core/ports/upstream.ts';
import { type CredentialProblem, toModelEntryAddress } from '#core/rules/credentials.ts';
import type { Codec, Endpoint } from '../wire/codec.ts';

/** An endpoint, or the reason why the model entry cannot be called. */
export type EndpointResult = Result<Endpoint, string>;

/** A model entry, and the codec of the API for it. */
interface CodecModelEntry {
  readonly entry: SnapshotEntry;
  readonly codec: Codec;
}

/** The endpoint of a model entry, with the mounted credentials that it was created from. */
interface CachedEndpoint {
  readonly mounted: ReadonlyArray<{
    readonly secret: string;
    readonly secretKey: string;
    readonly value: string | undefined;
  }>;
  readonly endpoint: EndpointResult;
}

/** Endpoints of model entries for one API. The object stays the same while nothing of its model entry changes. */
export function createEndpoints(credentials: Credentials) {
  const known = new WeakMap<SnapshotEntry, CachedEndpoint>();
  return function endpointOf({ entry, codec }: CodecModelEntry): EndpointResult {
    const before = known.get(entry);
    if (before?.mounted.every(({ secret, secretKey, value }) => credentials.read(secret, secretKey) === value)) {
      return before.endpoint;
    }
    const mounted = Object.values(entry.credentials).map((ref) => ({
      ...ref,
      value: credentials.read(ref.secret, ref.secretKey),
    }));
    const values = mounted.map(({ value }) => value);
    const endpoint = toEndpoint(entry, codec, values);
    known.set(entry, { mounted, endpoint });
    return endpoint;
  };
}

function toEndpoint(entry: SnapshotEntry, codec: Codec, values: ReadonlyArray<string | undefined>): EndpointResult {
  const names = Object.keys(entry.credentials);
  const access = toModelEntryAddress(
    entry,
    names.map((name, at) => [name, values[at]]),
  );
  if (!access.ok) return err(describe(access.failure, entry));
  const { provider, base, credentials, signing } = access.value;
  const address = { entry, provider, base: base.replace(/(?<!\/)\/+$/, ''), credentials };
  return ok({ ...address, codec, route: codec.routeTo(address), signing });
}

function describe({ credential, problem }: CredentialProblem, { credentials }: SnapshotEntry): string {
  if (credential === undefined) return problem;
  const ref = credentials[credential];
  return `credential ${credential} ${problem}${ref === undefined ? '' : `: ${ref.secret}/${ref.secretKey}`}`;
}
