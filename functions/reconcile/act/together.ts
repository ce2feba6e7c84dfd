// What is done for many keys of an instance at once? Policies, first claims and new values: a few statements for a thousand of them.
// Each of them succeeds or fails by itself where its row does; only a database that does not answer fails them all.
import type { ClaimOutcome } from '#core/ports/registry.ts';
import type { ActionName, ActionOf } from '../action.ts';
import { each } from '../observe/each.ts';
import type { Link } from '../observe/links.ts';
import { pathOf, sumKey } from '../world.ts';
import { done, failed, type Hands, type Outcome, stale } from './hands.ts';
import { movedMeanwhile } from './objects.ts';
import { claimed, holderOf, olderSums, on } from './registry.ts';

const WIDTH = 16;

/** One outcome per action, all of one name and of one instance. `written`: their objects were written by this run a moment ago. */
type Together<Name extends ActionName> = (
  actions: ReadonlyArray<ActionOf<Name>>,
  hands: Hands,
  written: ReadonlySet<string>,
) => Promise<ReadonlyArray<Outcome>>;

/** `work` with the database of all of them; where that cannot be reached, each fails. */
async function atOnce(
  actions: ReadonlyArray<ActionOf<'ClaimAlias' | 'AddValue'>>,
  hands: Hands,
  work: (link: Link) => Promise<ReadonlyArray<Outcome>>,
): Promise<ReadonlyArray<Outcome>> {
  const link = hands.links.get(actions[0]?.instance ?? '');
  return link === undefined ? actions.map(() => failed('its database cannot be reached')) : work(link);
}

/**
 * A list is older than this call: what was deleted meanwhile must not come back as a claim. What this run has just given its
 * finalizer is there, and cannot go without us.
 */
const claimAliases: Together<'ClaimAlias'> = (actions, hands, written) =>
  atOnce(actions, hands, async ({ uid, registry }) => {
    const moved = await each(actions, WIDTH, async (action) =>
      written.has(pathOf(action)) ? undefined : movedMeanwhile(action, hands),
    );
    const current = actions.filter((_, index) => moved[index] === undefined);
    const wishes = current.map((action) => ({
      kind: action.scope,
      alias: action.alias,
      holder: holderOf(action, hands),
    }));
    const outcomes = await registry.claimAll(uid, wishes);
    const sums = await olderSums(actions[0]?.instance ?? '', outcomes, hands);
    const found = new Map(
      current.map((action, index) => [action, claimed(action, outcomes[index] as ClaimOutcome, sums)]),
    );
    return actions.map((action, index) => {
      const fact = moved[index];
      return fact === undefined ? (found.get(action) as Outcome) : stale(fact);
    });
  });

const addValues: Together<'AddValue'> = (actions, hands) =>
  atOnce(actions, hands, async ({ registry }) => {
    const added = await registry.addValues(
      actions.map(({ scopeId, hash, asked }) => ({ scopeId, hash, ...(asked === undefined ? {} : { asked }) })),
    );
    return actions.map(({ instance, claim: key, hash, ...at }, index): Outcome => {
      const values = added[index];
      if (values === undefined || values === 'retired')
        return failed('its claim is over: somebody else has retired it');
      if (values === 'another scope has it') return done({ fact: 'valueRefused', key: pathOf(at), hash });
      return done({ fact: 'values', instance, key, values });
    });
  });

/**
 * All policies of an instance in one transaction; the sums of recounted windows are read again. A policy that takes
 * another's place is written only if its object is still as it was read: a slow run never undoes an edit that a faster
 * one has carried already. One outcome per action.
 */
async function writePolicies(
  actions: ReadonlyArray<ActionOf<'WritePolicy'>>,
  hands: Hands,
): Promise<ReadonlyArray<Outcome>> {
  const moved = await each(actions, WIDTH, async (action) =>
    isFirst(action, hands) ? undefined : movedMeanwhile(action, hands),
  );
  const current = actions.filter((_, index) => moved[index] === undefined);
  const written = await writeAll(current, hands);
  return moved.map((fact) => (fact === undefined ? written : stale(fact)));
}

async function writeAll(actions: ReadonlyArray<ActionOf<'WritePolicy'>>, hands: Hands): Promise<Outcome> {
  const [first] = actions;
  if (first === undefined) return done();
  const { instance } = first;
  return on(first, hands, async ({ uid, registry }) => {
    const writes = actions.map(({ write }) => write);
    await registry.writePolicies(uid, writes);
    const recounted = writes.flatMap(({ recounts }) => recounts ?? []);
    const spent = recounted.length === 0 ? [] : await registry.sums(recounted);
    const sums = new Map(spent.map((sum) => [sumKey(sum.scopeId, sum.window), sum.spent]));
    return done(
      ...actions.map(({ claim: key, write: { policy } }) => ({ fact: 'policy', instance, key, policy }) as const),
      { fact: 'sums', instance, sums },
    );
  });
}

const isFirst = ({ instance, claim }: ActionOf<'WritePolicy'>, { world }: Hands): boolean =>
  world.instances.get(instance)?.claims.get(claim)?.policy === undefined;

export const together = { WritePolicy: writePolicies, ClaimAlias: claimAliases, AddValue: addValues } as const;
