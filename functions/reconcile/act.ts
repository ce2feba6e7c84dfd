// How is a plan done? Objects at once, the actions of one object in order; each is caught once, and what it changed is learned.
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { reasonOf } from '#core/reason.ts';
import { done, failed, type Hands, type Outcome } from './act/hands.ts';
import { objectPerformers } from './act/objects.ts';
import { registryPerformers } from './act/registry.ts';
import { rotateSecret } from './act/rotate.ts';
import { secretPerformers } from './act/secrets.ts';
import { together } from './act/together.ts';
import { toldPerformers } from './act/told.ts';
import { workloadPerformers } from './act/workload.ts';
import { type Action, type ActionOf, isTold } from './action.ts';
import { giveUp, learn } from './learn.ts';
import { each } from './observe/each.ts';
import { type Draft, idOf, pathOf } from './world.ts';

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

/**
 * Never rejects. An action that does not succeed ends the turn of its object; the next plan knows. Policies are written together
 * beside the turns, first claims and new values after them: for each object they are the last thing of its turn.
 */
export async function act(actions: ReadonlyArray<Action>, hands: Actor): Promise<Deed[]> {
  const { policies = [], own = [] } = Object.groupBy(actions, (action) =>
    action.action === 'WritePolicy' ? 'policies' : 'own',
  );
  const turns = Map.groupBy(own, (action) => idOf(action.kind, action));
  const waiting: Action[] = [];
  const written = new Set<string>();
  const [told, done] = await Promise.all([
    doTogether(policies, written, hands),
    each(turns.values(), WIDTH, async (turn) => {
      const last = turn.at(-1);
      const waits = last !== undefined && isForMany(last);
      const deeds = await doInOrder(waits ? turn.slice(0, -1) : turn, hands);
      if (waits && deeds.every(({ ended }) => ended === 'done')) {
        waiting.push(last);
        if (deeds.some(({ action }) => action.action === 'AddFinalizer')) written.add(pathOf(last));
      }
      return deeds;
    }),
  ]);
  return [...told, ...done.flat(), ...(await doTogether(waiting, written, hands))];
}

type ForMany = ActionOf<'WritePolicy' | 'ClaimAlias' | 'AddValue'>;

/** Of keys, for they are many; an adoption is proven one by one. */
const isForMany = (action: Action): boolean =>
  action.kind === 'VirtualKey' &&
  (action.action === 'AddValue' || (action.action === 'ClaimAlias' && action.proof === undefined));

async function doInOrder(turn: ReadonlyArray<Action>, hands: Actor): Promise<Deed[]> {
  const deeds: Deed[] = [];
  for (const action of turn) {
    const deed = conclude(action, await attempt(() => perform(action, hands), action), hands);
    deeds.push(deed);
    if (deed.ended !== 'done') break;
  }
  return deeds;
}

async function doTogether(actions: ReadonlyArray<Action>, written: ReadonlySet<string>, hands: Actor): Promise<Deed[]> {
  const groups = Map.groupBy(actions as ReadonlyArray<ForMany>, ({ action, instance }) => `${action} ${instance}`);
  const deeds = await each(groups.values(), WIDTH, (group) => doGroup(group, written, hands));
  return deeds.flat();
}

/** What fails as a whole fails for each of them. */
async function doGroup(group: ReadonlyArray<ForMany>, written: ReadonlySet<string>, hands: Actor): Promise<Deed[]> {
  const [first] = group;
  let outcomes: ReadonlyArray<Outcome> = [];
  const whole = await attempt(async () => {
    // The table has an entry for each name; TypeScript does not follow a union through it.
    const perform = together[first?.action ?? 'AddValue'] as (
      actions: ReadonlyArray<Action>,
      hands: Hands,
      written: ReadonlySet<string>,
    ) => Promise<ReadonlyArray<Outcome>>;
    outcomes = await perform(group, hands, written);
    return done();
  }, first);
  return group.map((action, index) => conclude(action, outcomes[index] ?? whole, hands));
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
  if (!isTold(action)) giveUp(world, action, `${action.action} failed: ${outcome.why}`);
  return { action, ended, why: outcome.why };
}
