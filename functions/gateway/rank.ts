// Which entries of the model name can be reached now, and in which order are they to be tried?
import { ownAddress, partsOf } from '#core/credential-names.ts';
import type { Credentials } from '#core/ports/serving.ts';
import { type DialectName, providerOf } from '#core/providers.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { SnapshotEntry } from '#core/snapshot.ts';
import type { Grant } from './authorize.ts';
import type { GatewayDeps } from './deps.ts';
import type { Health } from './health.ts';
import { inOrder } from './order.ts';
import type { Line } from './record.ts';
import type { Candidate } from './terms.ts';
import { anthropic } from './wire/anthropic.ts';
import type { Dialect, Endpoint } from './wire/dialect.ts';
import { openai } from './wire/openai.ts';

const DIALECTS: Readonly<Record<DialectName, Dialect>> = { openai, anthropic };

/** An entry that can be called, in its dialect. */
export interface Reachable extends Endpoint, Candidate {
  readonly dialect: Dialect;
}

export interface Ranking {
  /** The best first. */
  readonly order: ReadonlyArray<Reachable>;
  /** Until it is called the best one counts as busy with this request, for whoever ranks meanwhile. */
  readonly settled: () => void;
}

export type Rank = (grant: Grant, line: Line) => Ranking;

export function createRank(deps: Pick<GatewayDeps, 'credentials' | 'random'>, health: Health): Rank {
  const reached = new WeakMap<Candidate, Reached>();

  return function rank(grant, line) {
    const reachable: Reachable[] = [];
    const healthy: Reachable[] = [];
    for (const candidate of grant.candidates) {
      const found = reach(candidate);
      if (found.ok) reachable.push(found.value);
      else line.skipped(candidate.entry.identifier, found.failure);
    }
    for (const target of reachable) {
      if (health.resting(target) === undefined) healthy.push(target);
      else line.skipped(target.entry.identifier, 'put aside: it failed lately');
    }
    const { strategy } = grant.routing;
    const soonest = health.soonest(reachable);
    // All cool down: one is asked all the same, or a bad second of the provider's would be an outage of ours (DESIGN 10).
    if (healthy.length === 0 && soonest !== undefined) healthy.push(soonest);
    const order = inOrder(healthy, strategy, { random: deps.random, inFlight: health.inFlight });
    const [best] = order;
    const settled = best === undefined ? () => {} : health.enter(best.entry.identifier);
    return { order, settled };
  };

  /** Worked out again when a credential has changed; how it failed is not kept. */
  function reach(candidate: Candidate): Result<Reachable, string> {
    const known = reached.get(candidate);
    if (known !== undefined && hasCredentials(candidate.entry, known.written)) return known.found;
    const written = new Map<string, string | undefined>();
    const found = reachNow(candidate, written);
    if (found.ok) reached.set(candidate, { found, written });
    return found;
  }

  /** Whether they are what they were. */
  function hasCredentials({ credentials }: SnapshotEntry, written: ReadonlyMap<string, string | undefined>): boolean {
    for (const name in credentials) {
      const ref = credentials[name];
      if (ref !== undefined && deps.credentials.read(ref.secret, ref.entry) !== written.get(name)) return false;
    }
    return true;
  }

  function reachNow({ entry, price }: Candidate, written: Map<string, string | undefined>): Result<Reachable, string> {
    const provider = providerOf(entry.provider);
    const credentials = readCredentials(entry, deps.credentials, written);
    if (!credentials.ok) return credentials;
    const base = credentials.value.apiBase ?? entry.apiBase ?? ownAddress(provider, credentials.value);
    if (base === undefined)
      return err(`no address: give ${entry.provider} ${['an apiBase', ...partsOf(provider)].join(', or ')}`);
    if (!/^https?:\/\/[^\s/?#@]+([/?#]|$)/.test(base))
      return err('apiBase is not an http address without user name and password');
    const address = { base: base.replace(/\/+$/, ''), credentials: credentials.value };
    return ok({ entry, price, provider, dialect: DIALECTS[provider.dialect], ...address });
  }
}

interface Reached {
  readonly found: Result<Reachable, string>;
  /** Credentials by name, as the platform has them. */
  readonly written: ReadonlyMap<string, string | undefined>;
}

/** All credentials of an entry, or which one is not there. Secrets made from files end in a newline; no value does. */
function readCredentials(
  entry: SnapshotEntry,
  credentials: Credentials,
  written: Map<string, string | undefined>,
): Result<Readonly<Record<string, string>>, string> {
  const values: Record<string, string> = {};
  for (const [name, ref] of Object.entries(entry.credentials)) {
    const text = credentials.read(ref.secret, ref.entry);
    written.set(name, text);
    const value = text?.trim();
    if (value === undefined || value === '') return err(`credential ${name} is not there: ${ref.secret}/${ref.entry}`);
    values[name] = value;
  }
  return ok(values);
}
