// Doing a plan: objects concurrently, the actions of one object in their order. Each is caught once.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { withTimeout } from '#core/concurrency/timeout.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { Millis } from '#core/ports/money.ts';
import { type ActContext, failed, type Handlers } from './act/context.ts';
import { databaseHandlers } from './act/database.ts';
import { objectHandlers } from './act/objects.ts';
import { putSecret } from './act/secret.ts';
import { type Action, isForced, isReport, type Outcome, type Result } from './action.ts';
import { idOf, pathOf } from './world.ts';

/** Handlers by the name of their action, one for each. */
export const handlers = { ...objectHandlers, ...databaseHandlers, PutSecret: putSecret } satisfies Required<Handlers>;

/** Every adapter gives up long before: an action that hangs all the same does not hang the run. */
const MAX_ACTION: Millis = 90_000;
/** Turns at the same time. */
const WIDTH = 32;

/**
 * Never rejects. An action that does not succeed ends the turn of its object; the next plan knows. A turn that may not
 * begin any more is left to the next run.
 */
export async function act(actions: ReadonlyArray<Action>, context: ActContext): Promise<ReadonlyArray<Result>> {
  const turns = Map.groupBy(actions, (action) => idOf(action.kind, action));
  const results = await mapConcurrent(inTurn([...turns.values()], context.now), (turn) => take(turn, context), WIDTH);
  return results.flat();
}

async function take(turn: ReadonlyArray<Action>, context: ActContext): Promise<ReadonlyArray<Result>> {
  if (isTooLate(turn, context)) {
    defer(turn, context);
    return [];
  }
  const ended: Result[] = [];
  for (const action of turn) {
    const outcome = await attempt(action, context);
    note(action, outcome, context);
    ended.push({ action, outcome });
    if (outcome.ended !== 'done' && outcome.ended !== 'unchanged') break;
  }
  return ended;
}

/** Of very many, other ones are the first in each minute: those that were too late have their turn, too. */
function inTurn<T>(turns: ReadonlyArray<T>, now: Millis): ReadonlyArray<T> {
  const minute = Math.floor(now / 60_000);
  const from = turns.length > WIDTH ? Math.floor(((minute * GOLDEN_RATIO) % 1) * turns.length) : 0;
  return [...turns.slice(from), ...turns.slice(0, from)];
}

/** Its multiples are spread evenly between whole numbers. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** Reports and forced releases ask no database: they may begin later than steps. */
const isTooLate = (turn: ReadonlyArray<Action>, { time }: ActContext): boolean =>
  time.isOver() || (time.isLate() && !turn.every((action) => isReport(action) || isForced(action)));

/** A key without its steps has no report either. */
function defer([first]: ReadonlyArray<Action>, { world }: ActContext): void {
  if (first?.kind !== 'VirtualKey' || isReport(first)) return;
  const view = world.keys.get(pathOf(first));
  if (view !== undefined) world.keys.set(pathOf(first), { ...view, isDeferred: true });
}

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
