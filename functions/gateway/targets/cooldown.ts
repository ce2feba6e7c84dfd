// Cooldowns of model entries that failed, and requests in flight at each. Each process keeps its own.
import { createLru } from '#core/caches/lru.ts';
import type { Snapshot } from '#core/models/snapshot.ts';
import type { Millis } from '#core/ports/money.ts';
import type { GatewayDeps } from '../deps.ts';
import type { Address } from '../wire/codec.ts';

/** A failed attempt. */
interface FailureReport {
  /** The first failure of this request at this entry. Later ones of the same request do not count. */
  readonly isFirst: boolean;
  /** The VirtualKey (its scope) whose request may have caused the failure; absent: no request can. */
  readonly key?: string | undefined;
  /** Seconds that the provider asks clients to wait. */
  readonly retryAfter?: number | undefined;
  readonly isRateLimited?: boolean;
}

/** An entry as it is called now. */
type CalledAddress = Pick<Address, 'base' | 'credentials'> & {
  readonly entry: Pick<Address['entry'], 'identifier' | 'model'>;
};

export type Cooldowns = ReturnType<typeof createCooldowns>;

/** `called`: fingerprint of the address, model and credentials that failed. */
interface Cooldown {
  readonly until: Millis;
  readonly called: string;
}

/** As free requests see them: they change none, and call no entry that cools down. */
export function unchanged(cooldowns: Cooldowns): Cooldowns {
  const { of } = cooldowns;
  return {
    ...cooldowns,
    enter: () => () => {},
    soonest: (targets, key) => targets.find(({ endpoint }) => of(endpoint, key) === undefined),
    failed: () => {},
    succeeded: () => {},
  };
}

interface State {
  failures: ReadonlyArray<{ readonly at: Millis; readonly key: string | undefined }>;
  /** Of all VirtualKeys. */
  cooldown: Cooldown | undefined;
  /** Requests at the entry, the oldest first. */
  readonly inFlight: Set<{ readonly since: Millis }>;
}

/** Entries that are remembered: twice as many as an instance has, because edited ones leave theirs behind. */
const MAX_STATES = 1_024;
/** Cooldowns of single VirtualKeys that are remembered. */
const MAX_OWN = 4_096;
/** The longest cooldown, even where the provider asks for a longer wait. */
const MAX_COOLDOWN: Millis = 3_600_000;
/** The longest cooldown that a single request begins for all VirtualKeys: limits per minute are over then. */
const MAX_OF_ONE: Millis = 60_000;

export function createCooldowns({
  clock,
  log,
  metrics,
  memory,
}: Pick<GatewayDeps, 'clock' | 'log' | 'metrics' | 'memory'>) {
  const lasts = memory?.lasts ?? Number.POSITIVE_INFINITY;
  const states = createLru<State>(MAX_STATES);
  const own = createLru<Cooldown>(MAX_OWN);
  const stateOf = (identifier: string): State => {
    const state = states.get(identifier) ?? { failures: [], cooldown: undefined, inFlight: new Set() };
    states.set(identifier, state);
    return state;
  };

  return {
    of,
    /** Requests that this process has at the entry; those that the platform has ended without a word are forgotten. */
    inFlight: (identifier: string): number => {
      const { inFlight } = stateOf(identifier);
      for (const request of inFlight) {
        if (clock.now() - request.since < lasts) break;
        inFlight.delete(request);
      }
      return inFlight.size;
    },
    /** Counts a request at the entry until the returned function is called; later calls do nothing. */
    enter: (identifier: string) => {
      const { inFlight } = stateOf(identifier);
      const request = { since: clock.now() };
      inFlight.add(request);
      return () => void inFlight.delete(request);
    },
    /**
     * The target whose cooldown ends first for this VirtualKey, or the first without one; undefined where there is no
     * target.
     */
    soonest: <T extends { readonly endpoint: CalledAddress }>(
      targets: ReadonlyArray<T>,
      key: string,
    ): T | undefined => {
      const [first, ...others] = targets;
      const until = ({ endpoint }: T) => of(endpoint, key) ?? 0;
      return others.reduce((soonest, next) => (soonest && until(next) < until(soonest) ? next : soonest), first);
    },
    /**
     * Records a failure. `failures` of them `within` a time, without a success between them, begin a cooldown: for one
     * VirtualKey where its requests alone may have caused them all, else for all. One `retry-after` of up to a minute
     * begins one for all; a longer one counts as a failure.
     */
    failed: (
      target: CalledAddress,
      { failures, within, duration }: Snapshot['routing']['cooldown'],
      { isFirst, key, retryAfter, isRateLimited = false }: FailureReport,
    ) => {
      const state = stateOf(target.entry.identifier);
      const now = clock.now();
      if (isFirst) state.failures = [...state.failures.filter(({ at }) => at > now - within), { at: now, key }];
      const isShared = key === undefined || state.failures.some((failure) => failure.key !== key);
      const wait = Math.min((retryAfter ?? 0) * 1000, MAX_COOLDOWN);
      if (wait > 0 && wait <= MAX_OF_ONE) begin(target, wait, { isRateLimited: true });
      else if (state.failures.length < failures) return;
      else begin(target, Math.max(duration, wait), { isRateLimited, ...(isShared ? {} : { key }) });
    },
    succeeded: (identifier: string) => {
      const state = states.get(identifier);
      if (state !== undefined) state.failures = [];
    },
  };

  /**
   * The end of the entry's cooldown for this VirtualKey; undefined where it has none. A new address, model or
   * credential ends the cooldown.
   */
  function of(target: CalledAddress, key: string): Millis | undefined {
    const { identifier } = target.entry;
    const shared = endOf(target, states.get(identifier)?.cooldown);
    const ofKey = own.size() === 0 ? undefined : endOf(target, own.get(nameOf(identifier, key)));
    return shared === undefined || (ofKey !== undefined && ofKey > shared) ? ofKey : shared;
  }

  function endOf(target: CalledAddress, cooldown: Cooldown | undefined): Millis | undefined {
    if (cooldown === undefined || cooldown.until <= clock.now()) return undefined;
    return cooldown.called === fingerprint(target) ? cooldown.until : undefined;
  }

  /** `key`: for this VirtualKey only; one of its failures then still counts for all. */
  function begin(
    target: CalledAddress,
    duration: Millis,
    { isRateLimited, key }: Pick<FailureReport, 'isRateLimited' | 'key'>,
  ): void {
    const { identifier } = target.entry;
    const state = stateOf(identifier);
    const until = clock.now() + duration;
    state.failures = key === undefined ? [] : state.failures.slice(-1);
    const before = key === undefined ? state.cooldown : own.get(nameOf(identifier, key));
    // Requests that were under way end one by one: the longest cooldown counts.
    if ((endOf(target, before) ?? 0) >= until) return;
    const cooldown = { until, called: fingerprint(target) };
    if (key === undefined) state.cooldown = cooldown;
    else own.set(nameOf(identifier, key), cooldown);
    metrics.add('gateway_operator_cooldowns_total', { identifier });
    const fields = { identifier, seconds: duration / 1000, rateLimited: isRateLimited };
    log.warn('a model entry cools down', key === undefined ? fields : { ...fields, onlyFor: key });
  }
}

const nameOf = (identifier: string, key: string): string => `${key} ${identifier}`;

function fingerprint({ entry, base, credentials }: CalledAddress): string {
  return JSON.stringify([entry.model, base, credentials]);
}
