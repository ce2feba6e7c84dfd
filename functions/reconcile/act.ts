// How is a plan done? Objects at once, the actions of one object in order; each is caught once, and what it changed is learned.
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { aboutObject, noTracer } from '#core/ports/tracer.ts';
import { done, failed, type Hands, type Outcome } from './act/hands.ts';
import { objectPerformers } from './act/objects.ts';
import { registryPerformers, writePolicies } from './act/registry.ts';
import { rotateSecret } from './act/rotate.ts';
import { secretPerformers } from './act/secrets.ts';
import { toldPerformers } from './act/told.ts';
import { workloadPerformers } from './act/workload.ts';
import type { Action, ActionOf } from './action.ts';
import { giveUp, learn } from './learn.ts';
import { each } from './observe/each.ts';
import { reasonOf } from './observe/look.ts';
import type { Draft } from './world.ts';

/** How an action ended, for the report. */
export interface Deed {
  readonly action: Action;
  readonly ended: Outcome['ended'];
  readonly why?: string;
}

/** The one who learns from what was done. */
export type Actor = Hands & { readonly world: Draft };

const WIDTH = 16;
const performers = {
  ...objectPerformers,
  ...secretPerformers,
  RotateSecret: rotateSecret,
  ...registryPerformers,
  ...toldPerformers,
  ...workloadPerformers,
};

/** Never rejects. An action that does not succeed ends the turn of its object; the next plan knows. */
export async function act(actions: ReadonlyArray<Action>, hands: Actor): Promise<Deed[]> {
  const turns = Map.groupBy(actions, (action) =>
    action.action === 'WritePolicy'
      ? `policies ${action.instance}`
      : `${action.kind}/${action.namespace}/${action.name}`,
  );
  const deeds = await each(turns.values(), WIDTH, async (turn) => {
    const policies = turn.filter((action) => action.action === 'WritePolicy');
    return policies.length > 0 ? doPolicies(policies, hands) : doInOrder(turn, hands);
  });
  return deeds.flat();
}

async function doInOrder(turn: ReadonlyArray<Action>, hands: Actor): Promise<Deed[]> {
  const deeds: Deed[] = [];
  for (const action of turn) {
    const deed = conclude(action, await traced(action, hands), hands);
    deeds.push(deed);
    if (deed.ended !== 'done') break;
  }
  return deeds;
}

function traced(action: Action, hands: Actor): Promise<Outcome> {
  return (hands.span ?? noTracer).span(`reconcile ${action.action}`, aboutObject(action), async (span) => {
    const outcome = await attempt(() => perform(action, hands), action);
    span.add({ 'gateway_operator.outcome': outcome.ended });
    if (outcome.ended === 'failed') span.fail(outcome.why);
    return outcome;
  });
}

/** One transaction for all of them: they succeed or fail together, but for those whose object has changed. */
async function doPolicies(actions: ReadonlyArray<ActionOf<'WritePolicy'>>, hands: Actor): Promise<Deed[]> {
  let outcomes: ReadonlyArray<Outcome> = [];
  const whole = await attempt(async () => {
    outcomes = await writePolicies(actions, hands);
    return done();
  }, actions[0]);
  return actions.map((action, index) => conclude(action, outcomes[index] ?? whole, hands));
}

/** The one catch of an action. */
async function attempt(work: () => Promise<Outcome>, action: Action | undefined): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    const instance = action !== undefined && 'instance' in action ? action.instance : undefined;
    const unreachable = error instanceof DatabaseUnreachable;
    if (instance === undefined || (!unreachable && action?.action !== 'OpenDatabase')) return failed(reasonOf(error));
    const reason = unreachable ? 'DatabaseUnreachable' : 'DatabaseNotMigrated';
    return {
      ended: 'failed',
      why: reasonOf(error),
      facts: [{ fact: 'unreachable', instance, reason, message: reasonOf(error) }],
    };
  }
}

function perform(action: Action, hands: Hands): Promise<Outcome> {
  // The table has a performer for each name; TypeScript does not follow a union through it.
  const performer = performers[action.action as keyof typeof performers] as (
    action: Action,
    hands: Hands,
  ) => Promise<Outcome>;
  return performer(action, hands);
}

function conclude(action: Action, outcome: Outcome, { deps, world }: Actor): Deed {
  const { ended } = outcome;
  if ('facts' in outcome) learn(world, outcome.facts ?? []);
  deps.metrics.add('gateway_operator_reconcile_actions_total', { action: action.action, outcome: ended });
  if (ended !== 'failed' && ended !== 'moot') return { action, ended };
  const { kind, namespace, name } = action;
  const fields = { action: action.action, kind, namespace, name, why: outcome.why };
  if (ended === 'failed') deps.log.error('an action failed', fields);
  else deps.log.info('nothing is created in a namespace that is being deleted', fields);
  // A status or event that is not written keeps nothing else from being done.
  const isTold = action.action === 'WriteStatus' || action.action === 'RecordEvent';
  if (!isTold) giveUp(world, action, `${action.action} failed: ${outcome.why}`);
  return { action, ended, why: outcome.why };
}
