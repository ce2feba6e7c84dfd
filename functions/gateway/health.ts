// Which model entries failed lately, and how much has each to do? Kept in this process only: every process learns by itself.
import type { Millis } from '#core/ports/money.ts';
import type { Snapshot, SnapshotEntry } from '#core/snapshot.ts';
import type { AttemptFailure } from './attempt-failure.ts';
import type { GatewayDeps } from './deps.ts';
import type { Endpoint } from './wire/dialect.ts';

/** `isFirst`: of this request at this entry. What fails again in one request has failed once. */
type Failed = Snapshot['routing']['cooldown'] & { readonly isFirst: boolean };

/** An entry as it is called now. */
type Called = Pick<Endpoint, 'base' | 'credentials'> & { readonly entry: Pick<SnapshotEntry, 'identifier' | 'model'> };

export interface Health {
  /** Why the entry gets no requests now; undefined when it may. With another address, model or credential it may at once. */
  resting(target: Called): Rest | undefined;
  /** The one whose rest ends first, those first that have none; undefined where there is none at all. */
  soonest<T extends Called>(targets: ReadonlyArray<T>): T | undefined;
  /** Requests that this process has at the entry. */
  inFlight(identifier: string): number;
  /** A request goes to the entry. Call the answer once when it is over. */
  enter(identifier: string): () => void;
  /** So many failures within a while, with no success between them, put the entry aside; a provider's `retry-after` does at once. */
  failed(target: Called, failure: AttemptFailure, how: Failed): void;
  succeeded(identifier: string): void;
}

export interface Rest {
  readonly until: Millis;
  /** What failed. */
  readonly called: string;
  /** The provider asked for it: it is over its rate limit. */
  readonly rateLimited: boolean;
}

interface State {
  failures: Millis[];
  rest: Rest | undefined;
  inFlight: number;
}

/** A provider that wants to be left alone for longer is asked again after this. */
const LONGEST_REST = 3_600_000;

export function createHealth({ clock, log, metrics }: Pick<GatewayDeps, 'clock' | 'log' | 'metrics'>): Health {
  const states = new Map<string, State>();
  return {
    resting: (target) => restOf(states.get(target.entry.identifier), target),
    inFlight: (identifier) => states.get(identifier)?.inFlight ?? 0,
    enter: (identifier) => {
      const state = stateOf(identifier);
      state.inFlight += 1;
      return () => {
        state.inFlight -= 1;
      };
    },
    soonest: (targets) => {
      const until = (target: Called) => restOf(states.get(target.entry.identifier), target)?.until ?? 0;
      const [first, ...others] = targets;
      return others.reduce((soonest, next) => (soonest && until(next) < until(soonest) ? next : soonest), first);
    },
    failed: (target, { retryAfter, failure }, { failures, within, duration, isFirst }) => {
      const state = stateOf(target.entry.identifier);
      const now = clock.now();
      if (isFirst) state.failures = [...state.failures.filter((at) => at > now - within), now];
      if (retryAfter !== undefined) return putAside(target, Math.min(retryAfter * 1000, LONGEST_REST), true);
      if (state.failures.length >= failures) putAside(target, duration, failure.code === 'upstream_rate_limited');
    },
    succeeded: (identifier) => {
      const state = states.get(identifier);
      if (state !== undefined) state.failures = [];
    },
  };

  function stateOf(identifier: string): State {
    const state = states.get(identifier) ?? { failures: [], rest: undefined, inFlight: 0 };
    states.set(identifier, state);
    return state;
  }

  function putAside(target: Called, millis: Millis, rateLimited: boolean): void {
    const { identifier } = target.entry;
    const state = stateOf(identifier);
    const until = clock.now() + millis;
    state.failures = [];
    // Requests that were under way end one by one: the longest rest counts.
    if ((restOf(state, target)?.until ?? 0) >= until) return;
    state.rest = { until, rateLimited, called: fingerprint(target) };
    metrics.add('gateway_operator_entries_put_aside_total', { identifier });
    log.warn('a model entry is put aside', { identifier, seconds: millis / 1000, rateLimited });
  }

  function restOf(state: State | undefined, target: Called): Rest | undefined {
    const rest = state?.rest;
    if (rest === undefined || rest.until <= clock.now()) return undefined;
    return rest.called === fingerprint(target) ? rest : undefined;
  }
}

function fingerprint({ entry, base, credentials }: Called): string {
  return JSON.stringify([entry.model, base, credentials]);
}
