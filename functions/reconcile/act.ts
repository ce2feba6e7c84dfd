// Carries out a plan: objects concurrently, the actions of one object in order. Each action's error is caught once.

import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { Millis } from '#core/ports/money.ts';
import { type ActContext, failedOutcome, type Handlers } from './act/context.ts';
import { databaseHandlers } from './act/database.ts';
import { objectHandlers, toRefusedOutcome } from './act/objects.ts';
import { putSecret, retainSecret } from './act/secret.ts';
import { type Action, isForced, isReport, type Outcome, type Result } from './action.ts';
import { idOf } from './world.ts';

/** The handlers, one for each action, by the action's name. */
export const handlers = {
  ...objectHandlers,
  ...databaseHandlers,
  PutSecret: putSecret,
  RetainSecret: retainSecret,
} satisfies Required<Handlers>;

/** Every adapter has a shorter timeout. This one bounds an action that hangs in spite of it. */
const ACTION_TIMEOUT: Millis = 90_000;
/**
 * The maximum numbers of concurrent actions (first actions of batches and later ones are counted separately), of those
 * of one namespace, whose objects may be slow to write, and of concurrent batches, whose writes share transactions.
 */
const [MAX_ACTIONS, MAX_OWN, MAX_BATCHES] = [32, 24, 1024];

/**
 * Never rejects. An action that does not succeed ends the batch of its object, and the next plan sees the result. A
 * batch that is too late to begin is left to the next run.
 */
export async function act(actions: ReadonlyArray<Action>, context: ActContext): Promise<ReadonlyArray<Result>> {
  const batches = [...Map.groupBy(actions, (action) => idOf(action.kind, action)).values()];
  const [instance = ''] = context.world.instances.keys();
  const listName = `actions of ${instance}`;
  // If there are very many batches, those that are too late in this run come first in the next run.
  const isMany = batches.length > MAX_ACTIONS;
  // Instances, Users, Teams and namespaces come first, because VirtualKeys depend on them.
  const ordered = isMany ? context.roundRobin.order(listName, batches, toRow) : batches;
  const sorted = ordered.toSorted((one, other) => rankOf(one) - rankOf(other));
  const createPlaces = () => createFairLimiter(MAX_ACTIONS, Number.POSITIVE_INFINITY, { maxOwn: MAX_OWN }).run;
  const limits = { first: createPlaces(), later: createPlaces() };
  const mayBegin = (batch: ReadonlyArray<Action>): boolean => {
    if (isTooLate(batch, context)) return false;
    if (isMany) context.roundRobin.advance(listName, toRow(batch));
    return true;
  };
  const results = await mapConcurrent(sorted, (batch) => runBatch(batch, context, { limits, mayBegin }), MAX_BATCHES);
  return results.flat();
}

const RANKS: Partial<Record<Action['kind'], number>> = { GatewayInstance: 0, User: 1, Team: 1, Namespace: 1 };
const rankOf = ([first]: ReadonlyArray<Action>): number => (first === undefined ? 2 : (RANKS[first.kind] ?? 2));

/** All actions of a batch are about one object. */
const toRow = ([first]: ReadonlyArray<Action>) => ({
  namespace: first?.namespace ?? '',
  id: first === undefined ? '' : idOf(first.kind, first),
});

interface BatchLimits {
  /** Actions of batches that have begun do not wait for batches that begin. */
  readonly limits: Readonly<Record<'first' | 'later', ReturnType<typeof createFairLimiter>['run']>>;
  readonly mayBegin: (batch: ReadonlyArray<Action>) => boolean;
}

async function runBatch(
  batch: ReadonlyArray<Action>,
  context: ActContext,
  { limits, mayBegin }: BatchLimits,
): Promise<ReadonlyArray<Result>> {
  const ended: Result[] = [];
  for (const action of batch) {
    const isFirst = action === batch[0];
    const begin = async (): Promise<Outcome | undefined> =>
      (isFirst ? mayBegin(batch) : !context.timeLimits.isOver()) ? attempt(action, context) : undefined;
    // All writes of scopes that wait for the same database share a transaction.
    const outcome = await (action.action === 'PutScope'
      ? begin()
      : limits[isFirst ? 'first' : 'later'](action.namespace, begin));
    if (outcome === undefined) break;
    recordOutcome(action, outcome, context);
    ended.push({ action, outcome });
    if (outcome.ended !== 'done' && outcome.ended !== 'unchanged') break;
  }
  return ended;
}

/** Reports and forced releases need no database, so they may begin later than steps. */
const isTooLate = (batch: ReadonlyArray<Action>, { timeLimits: time }: ActContext): boolean =>
  time.isOver() || (time.isLate() && !batch.every((action) => isReport(action) || isForced(action)));

async function attempt(action: Action, context: ActContext): Promise<Outcome> {
  try {
    // The table has a handler for each name, which TypeScript cannot derive from the union.
    const handler = handlers[action.action] as (action: Action, context: ActContext) => Promise<Outcome>;
    return await withTimeout(context.deps.timer, ACTION_TIMEOUT, 'the action', handler(action, context));
  } catch (error) {
    // A webhook of another program may have answered with an error of its own.
    if (action.action === 'ApplyWorkload') return toRefusedOutcome(action, reasonOf(error));
    if (error instanceof DatabaseUnreachable) return failedOutcome(reasonOf(error), 'DatabaseUnreachable');
    return failedOutcome(reasonOf(error), action.action === 'OpenInstance' ? 'DatabaseNotMigrated' : undefined);
  }
}

function recordOutcome({ action, kind, namespace, name }: Action, outcome: Outcome, { deps }: ActContext): void {
  const { ended } = outcome;
  if (ended !== 'unchanged') deps.metrics.add('gateway_operator_reconcile_actions_total', { action, outcome: ended });
  const fields = { action, kind, namespace, name };
  if (ended === 'failed') deps.log.error('an action failed', { ...fields, why: outcome.problem.message });
  if (ended === 'skipped' && outcome.problem.reason === 'ReconcileFailed')
    deps.log.info('nothing is created in a namespace that is being deleted', {
      ...fields,
      why: outcome.problem.message,
    });
}
