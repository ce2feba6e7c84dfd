// Doing a plan: objects concurrently, the actions of one object in their order. Each is caught once.

import { createLimiter, type Limiter, mapConcurrent } from '#core/concurrency/limiter.ts';
import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { Millis } from '#core/ports/money.ts';
import { type ActContext, failed, type Handlers } from './act/context.ts';
import { databaseHandlers } from './act/database.ts';
import { objectHandlers } from './act/objects.ts';
import { putSecret } from './act/secret.ts';
import { type Action, isForced, isReport, type Outcome, type Result } from './action.ts';
import { idOf } from './world.ts';

/** Handlers by the name of their action, one for each. */
export const handlers = { ...objectHandlers, ...databaseHandlers, PutSecret: putSecret } satisfies Required<Handlers>;

/** Every adapter gives up long before: an action that hangs all the same does not hang the run. */
const MAX_ACTION: Millis = 90_000;
/** Actions at the same time, of those that begin batches and of the others; and batches, which share transactions. */
const [WIDTH, MAX_BATCHES] = [32, 1024];

/**
 * Never rejects. An action that does not succeed ends the batch of its object; the next plan knows. A batch that may not
 * begin any more is left to the next run.
 */
export async function act(actions: ReadonlyArray<Action>, context: ActContext): Promise<ReadonlyArray<Result>> {
  const batches = [...Map.groupBy(actions, (action) => idOf(action.kind, action)).values()];
  const [instance = ''] = context.world.instances.keys();
  const list = `actions of ${instance}`;
  // Of very many, those that were too late come first the next time.
  const isMany = batches.length > WIDTH;
  // Keys work by what their instance, Users and Teams are, so these come first.
  const inTurn = isMany ? context.turns.order(list, batches, rowOf) : batches;
  const sorted = inTurn.toSorted((one, other) => rankOf(one) - rankOf(other));
  const limits = { first: createLimiter(WIDTH), later: createLimiter(WIDTH) };
  const mayBegin = (batch: ReadonlyArray<Action>): boolean => {
    if (isTooLate(batch, context)) return false;
    if (isMany) context.turns.had(list, rowOf(batch));
    return true;
  };
  const results = await mapConcurrent(sorted, (batch) => take(batch, context, { limits, mayBegin }), MAX_BATCHES);
  return results.flat();
}

const RANKS: Partial<Record<Action['kind'], number>> = { GatewayInstance: 0, User: 1, Team: 1 };
const rankOf = ([first]: ReadonlyArray<Action>): number => (first === undefined ? 2 : (RANKS[first.kind] ?? 2));

/** All actions of a batch are about one object. */
const rowOf = ([first]: ReadonlyArray<Action>) => ({
  namespace: first?.namespace ?? '',
  id: first === undefined ? '' : idOf(first.kind, first),
});

interface Turn {
  /** Batches that have begun do not wait for those that begin. */
  readonly limits: Readonly<Record<'first' | 'later', Limiter>>;
  readonly mayBegin: (batch: ReadonlyArray<Action>) => boolean;
}

async function take(
  batch: ReadonlyArray<Action>,
  context: ActContext,
  { limits, mayBegin }: Turn,
): Promise<ReadonlyArray<Result>> {
  const ended: Result[] = [];
  for (const action of batch) {
    const isFirst = action === batch[0];
    const begin = async (): Promise<Outcome | undefined> =>
      (isFirst ? mayBegin(batch) : !context.time.isOver()) ? attempt(action, context) : undefined;
    // All writes of scopes that wait for the database share a transaction there.
    const outcome = await (action.action === 'PutScope' ? begin() : limits[isFirst ? 'first' : 'later'](begin));
    if (outcome === undefined) break;
    note(action, outcome, context);
    ended.push({ action, outcome });
    if (outcome.ended !== 'done' && outcome.ended !== 'unchanged') break;
  }
  return ended;
}

/** Reports and forced releases ask no database: they may begin later than steps. */
const isTooLate = (batch: ReadonlyArray<Action>, { time }: ActContext): boolean =>
  time.isOver() || (time.isLate() && !batch.every((action) => isReport(action) || isForced(action)));

/** The one catch of an action. */
async function attempt(action: Action, context: ActContext): Promise<Outcome> {
  try {
    // The table has a handler for each name; TypeScript does not follow a union through it.
    const handler = handlers[action.action] as (action: Action, context: ActContext) => Promise<Outcome>;
    return await withTimeout(context.deps.timer, MAX_ACTION, 'the action', handler(action, context));
  } catch (error) {
    if (error instanceof DatabaseUnreachable) return failed(reasonOf(error), 'DatabaseUnreachable');
    return failed(reasonOf(error), action.action === 'OpenInstance' ? 'DatabaseNotMigrated' : undefined);
  }
}

function note({ action, kind, namespace, name }: Action, outcome: Outcome, { deps }: ActContext): void {
  const { ended } = outcome;
  if (ended !== 'unchanged') deps.metrics.add('gateway_operator_reconcile_actions_total', { action, outcome: ended });
  const fields = { action, kind, namespace, name };
  if (ended === 'failed') deps.log.error('an action failed', { ...fields, why: outcome.problem.message });
  if (ended === 'skipped')
    deps.log.info('nothing is created in a namespace that is being deleted', { ...fields, why: outcome.why });
}
