// Cooldowns of model entries that failed, and what each has to do. Kept in this process only: every process learns by itself.
import type { Millis } from '#core/ports/money.ts';
import type { Snapshot } from '#core/snapshot.ts';
import type { GatewayDeps } from './deps.ts';
import type { Endpoint } from './wire/dialect.ts';

/** A failed attempt. */
interface Failed {
  /** Of this request at this entry. What fails again in one request has failed once. */
  readonly isFirst: boolean;
  /** Seconds for which the provider wants to be left alone. */
  readonly retryAfter?: number | undefined;
  readonly isRateLimited?: boolean;
}

/** An entry as it is called now. */
type Called = Pick<Endpoint, 'base' | 'credentials'> & {
  readonly entry: Pick<Endpoint['entry'], 'identifier' | 'model'>;
};

export type Cooldowns = ReturnType<typeof createCooldowns>;

interface State {
  failures: Millis[];
  /** `called`: what failed. */
  cooldown: { readonly until: Millis; readonly called: string } | undefined;
  inFlight: number;
}

/** A provider that wants to be left alone for longer is asked again after this. */
const MAX_COOLDOWN: Millis = 3_600_000;

export function createCooldowns({ clock, log, metrics }: Pick<GatewayDeps, 'clock' | 'log' | 'metrics'>) {
  const states = new Map<string, State>();
  const stateOf = (identifier: string): State => {
    const state = states.get(identifier) ?? { failures: [], cooldown: undefined, inFlight: 0 };
    states.set(identifier, state);
    return state;
  };

  return {
    of,
    /** Requests that this process has at the entry. */
    inFlight: (identifier: string) => states.get(identifier)?.inFlight ?? 0,
    /** A request goes to the entry. Call the answer once when it is over. */
    enter: (identifier: string) => {
      const state = stateOf(identifier);
      state.inFlight += 1;
      return () => {
        state.inFlight -= 1;
      };
    },
    /** The one whose cooldown ends first, those first that have none; undefined where there is no target. */
    soonest: <T extends Called>(targets: ReadonlyArray<T>): T | undefined => {
      const [first, ...others] = targets;
      const until = (target: Called) => of(target) ?? 0;
      return others.reduce((soonest, next) => (soonest && until(next) < until(soonest) ? next : soonest), first);
    },
    /** So many failures within a while, with no success between them, begin a cooldown; a provider's `retry-after` does so alone. */
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

  /** Until when the entry gets no requests; undefined where it may. With another address, model or credential it may immediately. */
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
