// Endpoints of model entries: address and credentials, made again when a mounted value has changed.

import { err, ok, type Result } from '#core/failure/result.ts';
import { malformedPart, ownAddress, partsOf, providerOf } from '#core/models/providers.ts';
import type { SnapshotEntry } from '#core/models/snapshot.ts';
import type { Credentials } from '#core/ports/serving.ts';
import type { Codec, Endpoint } from '../wire/codec.ts';
import { signingOf } from './signing.ts';

/** An endpoint, or why the entry cannot be called. */
export type Reached = Result<Endpoint, string>;

/** An entry, and the codec of the API for it. */
interface Callable {
  readonly entry: SnapshotEntry;
  readonly codec: Codec;
}

/** An entry's credentials by name, as they were mounted when its endpoint was made. */
interface Known {
  readonly mounted: ReadonlyArray<{
    readonly secret: string;
    readonly entry: string;
    readonly value: string | undefined;
  }>;
  readonly reached: Reached;
}

/** Endpoints of entries for one API, the same object for as long as nothing of an entry changes. */
export function createEndpoints(credentials: Credentials) {
  const known = new WeakMap<SnapshotEntry, Known>();
  return function endpointOf({ entry, codec }: Callable): Reached {
    const before = known.get(entry);
    if (before?.mounted.every(({ secret, entry, value }) => credentials.read(secret, entry) === value)) {
      return before.reached;
    }
    const mounted = Object.values(entry.credentials).map((ref) => ({
      ...ref,
      value: credentials.read(ref.secret, ref.entry),
    }));
    const values = mounted.map(({ value }) => value);
    const reached = reach(entry, codec, values);
    known.set(entry, { mounted, reached });
    return reached;
  };
}

function reach(entry: SnapshotEntry, codec: Codec, values: ReadonlyArray<string | undefined>): Reached {
  const provider = providerOf(entry.provider, entry.model);
  const credentials: Record<string, string> = {};
  for (const [at, [name, ref]] of Object.entries(entry.credentials).entries()) {
    // Secrets made from files end in a newline, which is not part of the value.
    const value = values[at]?.trim();
    if (value === undefined || value === '') return err(`credential ${name} is not there: ${ref.secret}/${ref.entry}`);
    credentials[name] = value;
  }
  const malformed = malformedPart(credentials);
  if (malformed !== undefined) return err(`credential ${malformed} cannot be part of an address`);
  const base = credentials.apiBase ?? entry.apiBase ?? ownAddress(provider, credentials);
  if (base === undefined)
    return err(`no address: give ${entry.provider} ${['an apiBase', ...partsOf(provider)].join(', or ')}`);
  if (!/^https?:\/\/[^\s/?#@]+([/?#]|$)/.test(base))
    return err('apiBase is not an http address without user name and password');
  const signing = signingOf(provider, credentials, base);
  if (!signing.ok) return signing;
  const address = { entry, provider, base: base.replace(/\/+$/, ''), credentials };
  return ok({ ...address, codec, route: codec.routeTo(address), signing: signing.value });
}
