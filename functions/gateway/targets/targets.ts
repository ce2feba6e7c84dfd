// Targets of a request: model entries that can be called and do not cool down, in the order of the attempts. Chosen
// after the reservation.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import type { Random } from '#core/ports/platform.ts';
import type { Grant } from '../caller/access.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { RequestLog } from '../request/request-log.ts';
import { type BoundedCandidate, outputLimit, type ReservedGrant } from '../spend/reserve.ts';
import type { Recipient } from '../wire/codec.ts';
import type { Affinity } from '../wire/request.ts';
import { modelEntryMarkOf, orderByConversation, type WeightedModelEntry } from './affinity.ts';
import type { Cooldowns } from './cooldown.ts';
import { createEndpoints } from './endpoints.ts';

const ticket: unique symbol = Symbol('Targets');

/** A model entry that can be called, with its output limit. */
export interface Target extends BoundedCandidate, Recipient {}

/** At least one target, in order. Only `chooseTargets` makes them. */
export interface Targets {
  readonly [ticket]: true;
  readonly reserved: ReservedGrant;
  readonly order: ReadonlyArray<Target>;
}

export function createChooseTargets(
  { credentials, random }: Pick<GatewayDependencies, 'credentials' | 'random'>,
  cooldowns: Cooldowns,
) {
  const endpointOf = createEndpoints(credentials);
  return function chooseTargets(reserved: ReservedGrant, log: RequestLog): Result<Targets, Failure> {
    const { grant, candidates } = reserved;
    const { key } = grant.caller;
    const reachable: Target[] = [];
    const ready: Target[] = [];
    for (const candidate of candidates) {
      const { entry } = candidate;
      const endpoint = endpointOf(candidate);
      if (!endpoint.ok) {
        log.addSkipped(entry.identifier, endpoint.failure);
        continue;
      }
      const target = { ...candidate, endpoint: endpoint.value, limit: outputLimit(reserved, candidate) };
      reachable.push(target);
      if (cooldowns.endOfCooldown(endpoint.value, key) === undefined) ready.push(target);
      else log.addSkipped(entry.identifier, 'cools down after failures');
    }
    // If all targets cool down, one of them is called: otherwise a short failure of a provider would become our outage
    // (DESIGN 10).
    const soonest = cooldowns.soonestAvailable(reachable, key);
    if (soonest === undefined) return err({ code: 'no_healthy_target', model: grant.request.model });
    const { inFlight } = cooldowns;
    const { strategy } = grant.routing;
    const { affinity } = grant.request;
    if (affinity?.isBound === true) {
      const bound = boundTarget(reachable, grant, affinity);
      return bound === undefined ? err(MODEL_REMOVED) : ok({ [ticket]: true, reserved, order: [bound] });
    }
    const available = ready.length > 0 ? ready : [soonest];
    const name = conversationOf(grant);
    const order =
      name === undefined
        ? orderByStrategy(available, strategy, { random, inFlight })
        : orderByConversation(available, strategy, name);
    return ok({ [ticket]: true, reserved, order });
  };
}

const MODEL_REMOVED: Failure = {
  code: 'invalid_request',
  message:
    'The provider of the earlier responses of this conversation is no longer available here. Begin a new conversation.',
};

/** The only target of a bound request: the model entry that created the earlier parts, whether it cools down or not. */
function boundTarget<T extends WeightedModelEntry>(
  reachable: ReadonlyArray<T>,
  grant: Grant,
  { modelEntryMark }: Affinity,
): T | undefined {
  if (modelEntryMark !== undefined) return reachable.find(({ entry }) => modelEntryMarkOf(entry) === modelEntryMark);
  return orderByConversation(reachable, grant.routing.strategy, conversationOf(grant) ?? '')[0];
}

/** The name of the conversation, unique among all keys. */
function conversationOf({ caller, request }: Grant): string | undefined {
  return request.affinity && `${caller.key.scopeId} ${request.affinity.conversation}`;
}

/**
 * All targets, each once, in the order of `routing.strategy`. Weights decide among targets that the strategy treats
 * alike.
 */
export function orderByStrategy<T extends WeightedModelEntry>(
  targets: ReadonlyArray<T>,
  strategy: string,
  { random, inFlight }: Pick<GatewayDependencies & Cooldowns, 'random' | 'inFlight'>,
): ReadonlyArray<T> {
  if (targets.length < 2) return targets;
  const shuffled = shuffle(targets, random);
  // The sort is stable: equal targets stay in shuffled order.
  if (strategy === 'Priority') shuffled.sort((a, b) => a.entry.priority - b.entry.priority);
  if (strategy === 'LeastBusy') shuffled.sort((a, b) => inFlight(a.entry.identifier) - inFlight(b.entry.identifier));
  return shuffled;
}

/** A random order in which each model entry comes first according to its share of the weights. */
function shuffle<T extends WeightedModelEntry>(targets: ReadonlyArray<T>, random: Random): T[] {
  const remaining = [...targets];
  const ordered: T[] = [];
  while (remaining.length > 0) ordered.push(...remaining.splice(pick(remaining, random), 1));
  return ordered;
}

function pick(targets: ReadonlyArray<WeightedModelEntry>, random: Random): number {
  const total = targets.reduce((sum, { entry }) => sum + entry.weight, 0);
  const dice = random(4).reduce((value, byte) => value * 256 + byte, 0) / 2 ** 32;
  let rest = dice * total;
  const index = targets.findIndex(({ entry }) => {
    rest -= entry.weight;
    return rest < 0;
  });
  return index === -1 ? targets.length - 1 : index;
}
