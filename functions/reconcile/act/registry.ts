// How are claims, values and policies written to an instance's database?
import type { Nano } from '#core/money.ts';
import type { ClaimOutcome, Holder, Ledger } from '#core/ports/registry.ts';
import type { ActionName, ActionOf } from '../action.ts';
import type { Fact } from '../fact.ts';
import { readClaims } from '../observe/database.ts';
import { readSecret } from '../observe/key-secrets.ts';
import { type Link, openedKey } from '../observe/links.ts';
import { clusterOf } from '../observe/strays.ts';
import { readSums } from '../observe/sums.ts';
import { present } from '../plan/key-secret.ts';
import { ledgerAskedFor, refusalOf } from '../plan/ledger.ts';
import { membersOf } from '../plan/outlook.ts';
import { claimKey, instancePathOf, type Member, pathOf } from '../world.ts';
import { done, failed, type Hands, type Outcome, type Performer, stale } from './hands.ts';
import { movedMeanwhile, objectOf } from './objects.ts';

/** Runs `work` with the database of the action's instance. */
export async function on(
  { instance }: { readonly instance: string },
  { links }: Hands,
  work: (link: Link) => Promise<Outcome>,
): Promise<Outcome> {
  const link = links.get(instance);
  return link === undefined ? failed('its database cannot be reached') : work(link);
}

const openDatabase: Performer<'OpenDatabase'> = (action, hands) =>
  on(action, hands, async ({ uid, registry }) => {
    const { instance, namespace, name } = action;
    // Opening would bring a deleted instance's row back to life.
    const moved = await movedMeanwhile(action, hands);
    if (moved !== undefined) return stale(moved);
    const { from, to } = await registry.migrate();
    if (from !== to) hands.deps.log.info('a database was migrated', { instance, from, to });
    const ledger = ledgerOf(instance, hands);
    const cluster = await clusterOf(hands.deps, hands.memory);
    const row = { uid, namespace, name, ...(cluster === undefined ? {} : { cluster }) };
    const adoption = await registry.openInstance(row, ledger);
    if (!adoption.ok) {
      const problem = refusalOf(adoption, ledger?.uid ?? '');
      return { ended: 'failed', why: problem.message, facts: [{ fact: 'unreachable', instance, ...problem }] };
    }
    const { now: time, adopted } = await registry.instance(uid);
    const view = hands.world.instances.get(instance);
    // What could be read a moment ago, in a schema that was right, is not read twice: there may be a hundred thousand of them.
    const isRead = from === to && ledger === undefined && view !== undefined && view.claims.size > 0;
    const claims = isRead ? view.claims : await readClaims(registry, uid, membersOn(instance, hands));
    const window = { now: hands.now, hash: hands.deps.hash };
    const sums = isRead ? view.sums : await readSums(registry, membersOn(instance, hands), claims, window);
    hands.memory.opened.add(openedKey(uid, hands.world.instances.get(instance)?.database.message ?? '', ledger));
    const known = { time, ...(adopted === undefined ? {} : { adopted }), claims, sums };
    return done({ fact: 'opened', instance, ...known });
  });

const closeInstance: Performer<'CloseInstance'> = (action, hands) =>
  on(action, hands, async ({ uid, registry }) => {
    const view = hands.world.instances.get(action.instance);
    // A database that was never migrated holds nothing of it.
    if (view?.database.ok === true && (view.database.opened || view.claims.size > 0)) await registry.closeInstance(uid);
    hands.memory.databases.delete(uid);
    await clearStore(uid, hands);
    return done({ fact: 'closed', instance: action.instance });
  });

/** Its counters are in PostgreSQL: a store that is away keeps some keys that nobody reads any more. */
async function clearStore(uid: string, { deps, memory }: Hands): Promise<void> {
  const store = memory.stores.get(uid);
  memory.stores.delete(uid);
  if (store === undefined) return;
  await deps.backends
    .clearStore(uid, store)
    .catch((error) =>
      deps.log.warn('the keys of a deleted instance stay in its store', { instanceUid: uid, why: `${error}` }),
    );
}

const ledgerOf = (instance: string, { world }: Hands): Ledger | undefined => {
  const object = world.instances.get(instance)?.object;
  return object === undefined ? undefined : ledgerAskedFor(object);
};

const closeStray: Performer<'CloseStray'> = (action, hands) =>
  on(action, hands, async ({ registry }) => {
    await registry.closeInstance(action.uid);
    return done({ fact: 'strayClosed', instance: action.instance, uid: action.uid });
  });

/** With a proof; all others are claimed together. */
const claimAlias: Performer<'ClaimAlias'> = (action, hands) =>
  on(action, hands, async ({ uid, registry }) => {
    const { instance, scope, alias, proof } = action;
    // A list is older than this call: what was deleted meanwhile must not come back as a claim.
    const moved = await movedMeanwhile(action, hands);
    if (moved !== undefined) return stale(moved);
    const outcome = await registry.claim(uid, scope, alias, holderOf(action, hands), proof);
    return claimed(action, outcome, await olderSums(instance, [outcome], hands));
  });

export const holderOf = (at: ActionOf<'ClaimAlias'>, hands: Hands): Holder => {
  const { namespace, name } = at;
  return { uid: objectOf(at, hands)?.metadata.uid ?? '', namespace, name };
};

/** What is learned of a claim that was asked for. */
export function claimed(
  { instance, scope, alias }: ActionOf<'ClaimAlias'>,
  outcome: ClaimOutcome,
  sums: ReadonlyMap<string, Nano> | undefined,
): Outcome {
  const key = claimKey(scope, alias);
  if (!outcome.won) return done({ fact: 'taken', instance, key, by: outcome.by });
  const found = { fact: 'claim', instance, key, claim: outcome.claim } as const;
  return sums === undefined ? done(found) : done(found, { fact: 'sums', instance, sums });
}

/** A claim that is older than this run has spent something: its sum was not asked for while it was somebody else's. */
export async function olderSums(
  instance: string,
  outcomes: ReadonlyArray<ClaimOutcome>,
  hands: Hands,
): Promise<ReadonlyMap<string, Nano> | undefined> {
  const older = outcomes.flatMap((outcome) =>
    outcome.won && outcome.claim.policy !== undefined ? [outcome.claim] : [],
  );
  const link = hands.links.get(instance);
  if (older.length === 0 || link === undefined) return undefined;
  const claims = new Map(older.map((claim) => [claimKey(claim.kind, claim.alias), claim]));
  return readSums(link.registry, membersOn(instance, hands), claims, { now: hands.now, hash: hands.deps.hash });
}

const retireClaim: Performer<'RetireClaim'> = (action, hands) =>
  on(action, hands, async ({ registry }) => {
    await registry.retire([action.scopeId]);
    return done({ fact: 'retired', instance: action.instance, key: action.claim });
  });

/** Where something of the same key comes after it; all others are added together. */
const addValue: Performer<'AddValue'> = (action, hands) =>
  on(action, hands, async ({ registry }) => {
    const { instance, claim: key, scopeId, hash, asked } = action;
    const values = await registry.addValue(scopeId, hash, asked);
    if (values !== undefined) return done({ fact: 'values', instance, key, values });
    return done({ fact: 'valueRefused', key: pathOf(action), hash });
  });

const retireValues: Performer<'RetireValues'> = (action, hands) =>
  on(action, hands, async ({ registry }) => {
    const { instance, claim: key, scopeId, hashes, overlap } = action;
    // A slow run never replaces what a faster one has published meanwhile by a value that is in no Secret any more.
    const moved = overlap === undefined ? undefined : await publishedMeanwhile(action, hands);
    if (moved !== undefined) return stale(moved);
    return done({ fact: 'values', instance, key, values: await registry.retireValues(scopeId, hashes, overlap) });
  });

/** The key's Secret as it is now, if it holds another value than was planned with. */
async function publishedMeanwhile(at: ActionOf<'RetireValues'>, { deps, world }: Hands): Promise<Fact | undefined> {
  const key = pathOf(at);
  const planned = present(world.keys.get(key)?.secret);
  if (planned === undefined) return undefined;
  const view = await readSecret(deps, at.namespace, planned.name);
  const same = view.state === 'present' && view.hash === planned.hash;
  return same ? undefined : { fact: 'secret', key, which: 'secret', view };
}

function membersOn(instance: string, { world }: Hands): ReadonlyArray<Member> {
  return membersOf(world).filter((member) => instancePathOf(member) === instance);
}

export const registryPerformers = {
  OpenDatabase: openDatabase,
  CloseInstance: closeInstance,
  CloseStray: closeStray,
  ClaimAlias: claimAlias,
  RetireClaim: retireClaim,
  AddValue: addValue,
  RetireValues: retireValues,
} satisfies { readonly [Name in ActionName]?: Performer<Name> };
