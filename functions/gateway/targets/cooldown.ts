// Cooldowns of model entries that failed, and requests in flight at each model entry. Each process has its own.
import { createLru } from '#core/caches/lru.ts';
import type { Snapshot } from '#core/models/snapshot.ts';
import type { Millis } from '#core/ports/money.ts';
import type { KeyPolicy } from '#core/ports/policy.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { Address } from '../wire/codec.ts';

/** A VirtualKey whose requests may cause failures. */
type FailingKey = Pick<KeyPolicy, 'scopeId' | 'object'>;

/** A failed attempt. */
interface FailureReport {
  /** The first failure of this request at this model entry. Later failures of the same request do not count. */
  readonly isFirst: boolean;
  /** The VirtualKey whose request may have caused the failure; absent: no request caused it. */
  readonly causingKey?: FailingKey | undefined;
  /** Seconds that the provider asks clients to wait. */
  readonly retryAfter?: number | undefined;
  readonly isRateLimited?: boolean;
}

/** The address, model and credentials of a model entry at a call. */
type CalledAddress = Pick<Address, 'base' | 'credentials'> & {
  readonly entry: Pick<Address['entry'], 'identifier' | 'model'>;
};

export type Cooldowns = ReturnType<typeof createCooldowns>;

/** `fingerprint`: of the address, model and credentials that failed. */
interface Cooldown {
  readonly until: Millis;
  readonly fingerprint: string;
}

/** Cooldowns for free requests: these change none, and call no model entry that cools down. */
export function toReadOnlyCooldowns(cooldowns: Cooldowns): Cooldowns {
  const { endOfCooldown } = cooldowns;
  return {
    ...cooldowns,
    enter: () => () => {},
    soonestAvailable: (targets, by) => targets.find(({ endpoint }) => endOfCooldown(endpoint, by) === undefined),
    recordFailure: () => {},
    recordSuccess: () => {},
  };
}

interface State {
  failures: ReadonlyArray<{ readonly at: Millis; readonly causingKey: FailingKey | undefined }>;
  /** The cooldown for all VirtualKeys. */
  cooldown: Cooldown | undefined;
  /** Requests in flight at the model entry, the oldest first. */
  readonly inFlight: Set<{ readonly since: Millis }>;
}

/**
 * The maximum number of states: twice as many as an instance has model entries, because each edit leaves an old state.
 */
const MAX_STATES = 1_024;
/** The maximum number of cooldowns of single VirtualKeys and namespaces. */
const MAX_OWNER_COOLDOWNS = 4_096;
/** The maximum cooldown, even if the provider asks for a longer wait. */
const MAX_COOLDOWN: Millis = 3_600_000;
/** The maximum cooldown that one request begins for all VirtualKeys: after it, limits per minute are free again. */
const MAX_SHARED_WAIT: Millis = 60_000;

export function createCooldowns({
  clock: wallClock,
  intervalClock: clock = wallClock,
  log,
  metrics,
  memory,
}: Pick<GatewayDependencies, 'clock' | 'intervalClock' | 'log' | 'metrics' | 'memory'>) {
  const maxAge = memory?.maxRequestTime ?? Number.POSITIVE_INFINITY;
  const states = createLru<State>(MAX_STATES);
  const ownerCooldowns = createLru<Cooldown>(MAX_OWNER_COOLDOWNS);
  const stateOf = (identifier: string): State => {
    const known = states.get(identifier);
    if (known !== undefined) return known;
    const state: State = { failures: [], cooldown: undefined, inFlight: new Set() };
    states.set(identifier, state);
    return state;
  };

  return {
    endOfCooldown,
    /**
     * Requests of this process in flight at the model entry. Requests that the platform ended without a notice do not
     * count.
     */
    inFlight: (identifier: string): number => {
      const { inFlight } = stateOf(identifier);
      for (const request of inFlight) {
        if (clock.now() - request.since < maxAge) break;
        inFlight.delete(request);
      }
      return inFlight.size;
    },
    /** Counts a request at the model entry until the returned function is called. Later calls of it do nothing. */
    enter: (identifier: string) => {
      const { inFlight } = stateOf(identifier);
      const request = { since: clock.now() };
      inFlight.add(request);
      return () => void inFlight.delete(request);
    },
    /**
     * The first target without a cooldown for this VirtualKey, else the one whose cooldown ends first. Undefined: there
     * are no targets.
     */
    soonestAvailable: <T extends { readonly endpoint: CalledAddress }>(
      targets: ReadonlyArray<T>,
      key: FailingKey,
    ): T | undefined => {
      const [first, ...others] = targets;
      const until = ({ endpoint }: T) => endOfCooldown(endpoint, key) ?? 0;
      return others.reduce((soonest, next) => (soonest && until(next) < until(soonest) ? next : soonest), first);
    },
    /**
     * Records a failure. A cooldown begins after `failures` failures in the time `within`, without a success between
     * them. If only requests of one VirtualKey, or of one namespace, may have caused them, the cooldown is for that
     * VirtualKey or namespace; else for all. A single `retry-after` of up to a minute begins a cooldown for all; a
     * longer one counts as a failure.
     */
    recordFailure: (
      target: CalledAddress,
      { failures, within, duration }: Snapshot['routing']['cooldown'],
      { isFirst, causingKey, retryAfter, isRateLimited = false }: FailureReport,
    ) => {
      const state = stateOf(target.entry.identifier);
      const now = clock.now();
      if (isFirst) state.failures = [...state.failures.filter(({ at }) => at > now - within), { at: now, causingKey }];
      const wait = Math.min((retryAfter ?? 0) * 1000, MAX_COOLDOWN);
      if (wait > 0 && wait <= MAX_SHARED_WAIT) begin(target, wait, { isRateLimited: true });
      else if (state.failures.length < failures) return;
      else begin(target, Math.max(duration, wait), { isRateLimited, owner: ownerOf(state.failures, causingKey) });
    },
    recordSuccess: (identifier: string) => {
      const state = states.get(identifier);
      if (state !== undefined && state.failures.length > 0) state.failures = [];
    },
  };

  /**
   * The end of the model entry's cooldown for this VirtualKey; undefined: none. A new address, model or credential ends
   * a cooldown.
   */
  function endOfCooldown(target: CalledAddress, key: FailingKey): Millis | undefined {
    const { identifier } = target.entry;
    const shared = endOf(target, states.get(identifier)?.cooldown);
    if (ownerCooldowns.size() === 0) return shared;
    const owners = [key.scopeId, namespaceOf(key)];
    const ends = [shared, ...owners.map((owner) => endOf(target, ownerCooldowns.get(nameOf(identifier, owner))))];
    return ends.reduce((latest, end) => (end !== undefined && end > (latest ?? 0) ? end : latest), undefined);
  }

  function endOf(target: CalledAddress, cooldown: Cooldown | undefined): Millis | undefined {
    if (cooldown === undefined || cooldown.until <= clock.now()) return undefined;
    return cooldown.fingerprint === fingerprintOf(target) ? cooldown.until : undefined;
  }

  /** Begins a cooldown. `owner`: only for this VirtualKey or namespace. Its last failure still counts for all. */
  function begin(
    target: CalledAddress,
    duration: Millis,
    { isRateLimited, owner }: Pick<FailureReport, 'isRateLimited'> & { readonly owner?: string | undefined },
  ): void {
    const { identifier } = target.entry;
    const state = stateOf(identifier);
    const until = clock.now() + duration;
    state.failures = owner === undefined ? [] : state.failures.slice(-1);
    const before = owner === undefined ? state.cooldown : ownerCooldowns.get(nameOf(identifier, owner));
    // Requests in flight end one by one: the longest cooldown counts.
    if ((endOf(target, before) ?? 0) >= until) return;
    const cooldown = { until, fingerprint: fingerprintOf(target) };
    if (owner === undefined) state.cooldown = cooldown;
    else ownerCooldowns.set(nameOf(identifier, owner), cooldown);
    metrics.add('gateway_operator_cooldowns_total', { identifier });
    const fields = { identifier, seconds: duration / 1000, rateLimited: isRateLimited };
    log.warn('a model entry cools down', owner === undefined ? fields : { ...fields, onlyFor: owner });
  }
}

const nameOf = (identifier: string, owner: string): string => `${owner} ${identifier}`;

/** The name of a namespace. It has a blank, which no id of a scope has. */
const namespaceOf = ({ object }: FailingKey): string => `namespace ${object.namespace}`;

/** The VirtualKey or namespace whose requests alone may have caused the failures; undefined: several, or none. */
function ownerOf(failures: State['failures'], last: FailingKey | undefined): string | undefined {
  if (last === undefined || failures.some(({ causingKey }) => causingKey === undefined)) return undefined;
  const keys = failures.flatMap((failure) => failure.causingKey ?? []);
  if (keys.every(({ scopeId }) => scopeId === last.scopeId)) return last.scopeId;
  return keys.every(({ object }) => object.namespace === last.object.namespace) ? namespaceOf(last) : undefined;
}

function fingerprintOf({ entry, base, credentials }: CalledAddress): string {
  return JSON.stringify([entry.model, base, credentials]);
}
