// Cooldowns of model entries that failed, and requests in flight at each. Each process keeps its own.
import { createLru } from '#core/lru.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Snapshot } from '#core/snapshot.ts';
import type { GatewayDeps } from './deps.ts';
import type { Address } from './wire/codec.ts';

/** A failed attempt. */
interface Failed {
  /** The first failure of this request at this entry. Later ones of the same request do not count. */
  readonly isFirst: boolean;
  /** Seconds that the provider asks clients to wait. */
  readonly retryAfter?: number | undefined;
  readonly isRateLimited?: boolean;
}

/** An entry as it is called now. */
type Called = Pick<Address, 'base' | 'credentials'> & {
  readonly entry: Pick<Address['entry'], 'identifier' | 'model'>;
};

export type Cooldowns = ReturnType<typeof createCooldowns>;

interface State {
  failures: Millis[];
  /** `called`: fingerprint of the address, model and credentials that failed. */
  cooldown: { readonly until: Millis; readonly called: string } | undefined;
  inFlight: number;
}

/** Entries that are remembered: twice as many as an instance has, because edited ones leave theirs behind. */
const MAX_STATES = 1_024;
/** The longest cooldown, even where the provider asks for a longer wait. */
const MAX_COOLDOWN: Millis = 3_600_000;

export function createCooldowns({ clock, log, metrics }: Pick<GatewayDeps, 'clock' | 'log' | 'metrics'>) {
  const states = createLru<State>(MAX_STATES);
  const stateOf = (identifier: string): State => {
    const state = states.get(identifier) ?? { failures: [], cooldown: undefined, inFlight: 0 };
    states.set(identifier, state);
    return state;
  };

  return {
    of,
    /** Requests that this process has at the entry. */
    inFlight: (identifier: string) => states.get(identifier)?.inFlight ?? 0,
    /** Counts a request at the entry until the returned function is called; later calls do nothing. */
    enter: (identifier: string) => {
      const state = stateOf(identifier);
      let isIn = true;
      state.inFlight += 1;
      return () => {
        if (isIn) state.inFlight -= 1;
        isIn = false;
      };
    },
    /** The target whose cooldown ends first, or the first without one; undefined where there is no target. */
    soonest: <T extends { readonly endpoint: Called }>(targets: ReadonlyArray<T>): T | undefined => {
      const [first, ...others] = targets;
      const until = ({ endpoint }: T) => of(endpoint) ?? 0;
      return others.reduce((soonest, next) => (soonest && until(next) < until(soonest) ? next : soonest), first);
    },
    /** Records a failure. `failures` of them `within` a time, without a success between them, begin a cooldown; one `retry-after` does too. */
    failed: (
      target: Called,
      { failures, within, duration }: Snapshot['routing']['cooldown'],
      { isFirst, retryAfter, isRateLimited = false }: Failed,
    ) => {
      const state = stateOf(target.entry.identifier);
      const now = clock.now();
      if (isFirst) state.failures = [...state.failures.filter((at) => at > now - within), now];
      if (retryAfter !== undefined) begin(target, Math.min(retryAfter * 1000, MAX_COOLDOWN), true);
      else if (state.failures.length >= failures) begin(target, duration, isRateLimited);
    },
    succeeded: (identifier: string) => {
      const state = states.get(identifier);
      if (state !== undefined) state.failures = [];
    },
  };

  /** The end of the entry's cooldown; undefined where it has none. A new address, model or credential ends the cooldown. */
  function of(target: Called): Millis | undefined {
    const cooldown = states.get(target.entry.identifier)?.cooldown;
    if (cooldown === undefined || cooldown.until <= clock.now()) return undefined;
    return cooldown.called === fingerprint(target) ? cooldown.until : undefined;
  }

  function begin(target: Called, duration: Millis, rateLimited: boolean): void {
    const { identifier } = target.entry;
    const state = stateOf(identifier);
    const until = clock.now() + duration;
    state.failures = [];
    // Requests that were under way end one by one: the longest cooldown counts.
    if ((of(target) ?? 0) >= until) return;
    state.cooldown = { until, called: fingerprint(target) };
    metrics.add('gateway_operator_cooldowns_total', { identifier });
    log.warn('a model entry cools down', { identifier, seconds: duration / 1000, rateLimited });
  }
}

function fingerprint({ entry, base, credentials }: Called): string {
  return JSON.stringify([entry.model, base, credentials]);
}
