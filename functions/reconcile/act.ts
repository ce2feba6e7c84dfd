// Doing a plan: objects concurrently, the actions of one object in their order. Each is caught once.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { type ActContext, failed, type Handlers } from './act/context.ts';
import { databaseHandlers } from './act/database.ts';
import { objectHandlers } from './act/objects.ts';
import { putSecret } from './act/secret.ts';
import type { Action, Outcome, Result } from './action.ts';
import { idOf } from './world.ts';

/** Handlers by the name of their action, one for each. */
export const handlers = { ...objectHandlers, ...databaseHandlers, PutSecret: putSecret } satisfies Required<Handlers>;

/** Never rejects. An action that does not succeed ends the turn of its object; the next plan knows. */
export async function act(actions: ReadonlyArray<Action>, context: ActContext): Promise<ReadonlyArray<Result>> {
  const turns = Map.groupBy(actions, (action) => idOf(action.kind, action));
  const results = await mapConcurrent(turns.values(), async (turn) => {
    const ended: Result[] = [];
    for (const action of turn) {
      const outcome = await attempt(action, context);
      note(action, outcome, context);
      ended.push({ action, outcome });
      if (outcome.ended !== 'done' && outcome.ended !== 'unchanged') break;
    }
    return ended;
  });
  return results.flat();
}

/** The one catch of an action. */
async function attempt(action: Action, context: ActContext): Promise<Outcome> {
  try {
    // The table has a handler for each name; TypeScript does not follow a union through it.
    const handler = handlers[action.action] as (action: Action, context: ActContext) => Promise<Outcome>;
    return await handler(action, context);
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
