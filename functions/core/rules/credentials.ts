// The rule about a model entry's credentials: an address and a signature can be made from their values. Otherwise the
// gateway skips the model entry.
import { err, ok, type Result } from '../failure/result.ts';
import { malformedPart, ownAddress, type Provider, partsOf, providerOf } from '../models/providers.ts';
import type { Signing } from '../ports/upstream.ts';
import { signingOf } from './signing.ts';

/** The reason why values are no credentials. It never contains a value. */
export interface CredentialProblem {
  /** The name of the credential that is wrong or missing; absent: the model entry has no address. */
  readonly credential?: string;
  readonly problem: string;
}

/** The maximum characters of a credential. The key file of a service account has 2,400. */
const MAX_CREDENTIAL = 16_384;

/** A model entry's address, and the credentials for it. */
export interface ModelEntryAddress {
  readonly provider: Provider;
  /** The address before the paths of the APIs. */
  readonly base: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly signing: Signing | undefined;
}

interface Entry {
  readonly provider: string;
  readonly model: string;
  readonly apiBase?: string | undefined;
}

/**
 * `values`: texts by the name of the credential, in the order of the model entry; undefined: the Secret or its key does
 * not exist.
 */
export function toModelEntryAddress(
  { provider: name, model, apiBase }: Entry,
  values: ReadonlyArray<readonly [name: string, value: string | undefined]>,
): Result<ModelEntryAddress, CredentialProblem> {
  const provider = providerOf(name, model);
  const credentials: Record<string, string> = {};
  for (const [credential, value] of values) {
    if (value === undefined) return err({ credential, problem: 'is missing' });
    if (value.length > MAX_CREDENTIAL)
      return err({ credential, problem: `has ${value.length} characters, but at most ${MAX_CREDENTIAL} are allowed` });
    // Secrets made from files end in a newline, which is not part of the value.
    credentials[credential] = value.trim();
    if (credentials[credential] === '') return err({ credential, problem: 'is empty' });
  }
  const malformed = malformedPart(credentials);
  if (malformed !== undefined) return err({ credential: malformed, problem: 'cannot be part of an address' });
  const base = credentials.apiBase ?? apiBase ?? ownAddress(provider, credentials);
  if (base === undefined)
    return err({ problem: `no address: ${name} needs ${['an apiBase', ...partsOf(provider)].join(', or ')}` });
  if (!/^https?:\/\/[^\s/?#@]+([/?#]|$)/.test(base))
    return err({ credential: 'apiBase', problem: 'must be an http address, without user name and password' });
  const signing = signingOf(provider, credentials, base);
  return signing.ok ? ok({ provider, base, credentials, signing: signing.value }) : signing;
}
