// The double of the registry: claims, values and policies without a database.
import type { Clock, Ids } from '#core/ports/clock.ts';
import type { Window } from '#core/ports/money.ts';
import type { KeyPolicy, KeyRecord, Policies, ScopeId, ScopePolicy } from '#core/ports/policy.ts';
import {
  type Added,
  type Adoption,
  type Claim,
  type ClaimOutcome,
  type InstanceRow,
  type Ledger,
  type LiveValue,
  type PolicyWrite,
  type Registry,
  SAME_PLACE,
  type ScopeWrite,
} from '#core/ports/registry.ts';

interface Deps {
  readonly clock: Clock;
  readonly ids: Ids;
  /** Makes a window's sum from its entries, where there are books: `createMemoryBooks().recount`. */
  readonly recount?: (scopeId: ScopeId, window: Window) => void | Promise<void>;
  /** Told of scopes that come from another instance, where there are books: `createMemoryBooks().moved`. */
  readonly moved?: (scopeId: ScopeId, instanceUid: string) => void;
}

interface Row extends Omit<Claim, 'values' | 'policy' | 'holder' | 'alias'> {
  alias: string;
  instanceUid: string;
  holder: Claim['holder'];
  readonly values: Map<string, LiveValue>;
  /** When those that do not work any more were made. */
  readonly before: Map<string, LiveValue['createdAt']>;
  retired: boolean;
  /** Of the holder's spec, when the policy was made of it. */
  generation: number;
  policy?: ScopePolicy | KeyPolicy;
}

interface Instance extends InstanceRow {
  open: boolean;
  adopted?: { readonly from: string; readonly at: number };
  adoptedBy?: string;
  /** What lived when it was closed. */
  closedWith: ReadonlyArray<{ readonly row: Row; readonly values: ReadonlyArray<LiveValue> }>;
}

export type MemoryRegistry = Registry & { policies(instanceUid: string): Policies };

export function createMemoryRegistry({ clock, ids, recount, moved: tellMoved }: Deps): MemoryRegistry {
  const instances = new Map<string, Instance>();
  const rows = new Map<ScopeId, Row>();
  const live = (instanceUid: string) =>
    [...rows.values()].filter((row) => row.instanceUid === instanceUid && !row.retired);
  const retire = (row: Row | undefined) => {
    if (row === undefined) return;
    row.retired = true;
    for (const value of row.values.values()) forget(row, value);
  };

  const registry: MemoryRegistry = {
    migrate: async () => ({ from: 1, to: 1 }),
    openInstance: async (instance, ledger) => {
      const { uid } = instance;
      const before = instances.get(uid);
      const hasOwn = before?.adopted !== undefined || live(uid).length > 0;
      const adoption = ledger === undefined || hasOwn ? { ok: true as const } : judgeLedger(uid, ledger);
      if (!adoption.ok) return adoption;
      instances.set(uid, { ...before, ...instance, open: true, closedWith: [] });
      if (ledger !== undefined && !hasOwn) {
        close(ledger.uid);
        adopt(uid, ledger.uid);
      }
      return adoption;
    },
    closeInstance: async (uid) => close(uid),
    claims: async (instanceUid, keep = (claim) => claim) => live(instanceUid).map((row) => keep(toClaim(row))),
    claimsOf: async (instanceUid, aliases) =>
      live(instanceUid)
        .filter((row) => aliases.some(({ kind, alias }) => row.kind === kind && row.alias === alias))
        .map(toClaim),
    putScope: async (write) => {
      const { instanceUid, kind, alias, holder, policy, value, proof } = write;
      const mine = () => live(instanceUid).find((row) => row.kind === kind && row.alias === alias);
      const isMovable = kind === 'key' && proof !== undefined && retained(proof) !== undefined;
      if (mine() === undefined && !isMovable) insert(write);
      else await registry.claim(instanceUid, kind, alias, holder, proof);
      const row = mine();
      if (row?.holder.uid !== holder.uid || row.scopeId !== policy.scopeId) return 'taken';
      if (
        value?.unless !== undefined &&
        row.values.get(value.unless)?.notAfter === undefined &&
        row.values.has(value.unless)
      )
        return 'overtaken';
      await writePolicy(instanceUid, write);
      if (value === undefined) return 'written';
      return (await registry.addValue(row.scopeId, value.hash, value.asked)) === undefined ? 'value taken' : 'written';
    },
    claim: async (instanceUid, kind, alias, holder, proof) => {
      const found = live(instanceUid).find((row) => row.kind === kind && row.alias === alias);
      if (found !== undefined && found.holder.uid !== holder.uid) {
        const { namespace, name } = found.holder;
        const isInPlace = proof === SAME_PLACE && namespace === holder.namespace && name === holder.name;
        if (!(kind === 'key' ? isLive(found, proof) : isInPlace)) return { won: false, by: found.holder };
        Object.assign(found, { holder, generation: 0 });
      }
      if (found !== undefined) return { won: true, claim: toClaim(found) };
      const moved = kind === 'key' && proof !== undefined ? retained(proof) : undefined;
      if (moved !== undefined) {
        const models = moved.policy !== undefined && 'modelScopes' in moved.policy ? moved.policy.modelScopes : [];
        for (const { scopeId } of [moved, ...(models ?? [])]) tellMoved?.(scopeId, instanceUid);
        return { won: true, claim: toClaim(Object.assign(moved, { instanceUid, alias, holder, generation: 0 })) };
      }
      const scopeId = ids.next();
      const row = {
        scopeId,
        instanceUid,
        kind,
        alias,
        holder,
        anchor: Math.floor(clock.now() / 1000) * 1000,
        values: new Map(),
        before: new Map(),
        retired: false,
        generation: 0,
      };
      rows.set(scopeId, row);
      return { won: true, claim: toClaim(row) };
    },
    instance: async (uid) => {
      const { adopted, open = false } = instances.get(uid) ?? {};
      return { now: clock.now(), isOpen: open, ...(adopted === undefined ? {} : { adopted }) };
    },
    openInstances: async (cluster) =>
      [...instances.values()]
        .filter((row) => row.open && row.cluster === cluster)
        .map(({ uid, namespace, name }) => ({ uid, namespace, name, cluster })),
    addValue: async (scopeId, hash, asked) => {
      const row = rows.get(scopeId);
      if (row === undefined || row.retired) {
        throw new Error(`adding a value to scope ${scopeId}, which is retired or was never claimed`);
      }
      const owner = [...rows.values()].find(({ values }) => values.has(hash));
      if (owner !== undefined && owner !== row) return undefined;
      if (owner === undefined)
        row.values.set(hash, makeValue(row, hash, asked ?? [...row.values.values()].at(-1)?.asked));
      return valuesOf(row);
    },
    retireValues: async (scopeId, hashes, overlap) => {
      const row = rows.get(scopeId);
      for (const value of hashes.flatMap((hash) => row?.values.get(hash) ?? [])) {
        if (overlap !== undefined) row?.values.set(value.hash, { notAfter: clock.now() + overlap, ...value });
        else forget(row, value);
      }
      return row === undefined ? [] : valuesOf(row);
    },
    writePolicies: async (instanceUid, writes) => {
      for (const write of writes) await writePolicy(instanceUid, write);
    },
    retire: async (scopeIds) => {
      for (const scopeId of scopeIds) retire(rows.get(scopeId));
    },
    policies: (instanceUid) => ({ find: async (hash) => find(instanceUid, hash) }),
    claimAll: async (instanceUid, wishes) => {
      const outcomes: ClaimOutcome[] = [];
      for (const { kind, alias, holder } of wishes)
        outcomes.push(await registry.claim(instanceUid, kind, alias, holder));
      return outcomes;
    },
    addValues: async (values) => {
      const added: Added[] = [];
      for (const { scopeId, hash, asked } of values) {
        const isLive = rows.get(scopeId)?.retired === false;
        const all = isLive ? await registry.addValue(scopeId, hash, asked) : 'retired';
        added.push(all ?? 'another scope has it');
      }
      return added;
    },
  };
  return registry;

  function insert({ instanceUid, kind, alias, holder, policy: { scopeId, anchor } }: ScopeWrite): void {
    if (rows.has(scopeId)) return;
    const fresh = { values: new Map(), before: new Map(), retired: false, generation: 0 };
    const wholeSecond = Math.floor(anchor / 1000) * 1000;
    rows.set(scopeId, { scopeId, instanceUid, kind, alias, holder, anchor: wholeSecond, ...fresh });
  }

  function close(uid: string): void {
    const instance = instances.get(uid);
    const closing = live(uid);
    if (instance?.open === true) {
      instance.open = false;
      instance.closedWith = closing.map((row) => ({ row, values: [...row.values.values()] }));
    }
    closing.forEach(retire);
  }

  function isLive({ values }: Row, proof: string | undefined): boolean {
    const value = proof === undefined ? undefined : values.get(proof);
    return value !== undefined && (value.notAfter === undefined || value.notAfter > clock.now());
  }

  function retained(proof: string): Row | undefined {
    return [...rows.values()].find((row) => {
      return isLive(row, proof) && !row.retired && row.policy !== undefined && 'retained' in row.policy;
    });
  }

  function judgeLedger(uid: string, ledger: Ledger): Adoption {
    const old = instances.get(ledger.uid);
    if (uid === ledger.uid) return { ok: false, why: 'same' };
    if (old === undefined) return { ok: false, why: 'absent' };
    if (old.adoptedBy !== undefined) return { ok: false, why: 'adopted', by: old.adoptedBy };
    return old.open && !ledger.lost ? { ok: false, why: 'open' } : { ok: true };
  }

  function adopt(uid: string, ledger: string): void {
    const [own, old] = [instances.get(uid), instances.get(ledger)];
    if (own === undefined || old === undefined) return;
    own.adopted = { from: ledger, at: clock.now() };
    old.adoptedBy = uid;
    for (const { row, values } of old.closedWith) {
      row.instanceUid = uid;
      row.retired = false;
      row.generation = 0;
      const isTaken = (hash: string) => [...rows.values()].some((other) => other.values.has(hash));
      for (const value of values) if (!isTaken(value.hash)) row.values.set(value.hash, value);
      const { policy } = row;
      if (policy !== undefined && !('retained' in policy)) row.policy = { ...policy, blocked: true };
    }
  }

  function makeValue({ before, values }: Row, hash: string, asked: string | undefined): LiveValue {
    const newest = Math.max(...[...values.values()].map(({ createdAt }) => createdAt + 1), 0);
    const createdAt = before.get(hash) ?? Math.max(clock.now(), newest);
    return { hash, createdAt, ...(asked === undefined ? {} : { asked }) };
  }

  async function writePolicy(instanceUid: string, { policy, generation, recounts = [] }: PolicyWrite): Promise<void> {
    const row = rows.get(policy.scopeId);
    if (row === undefined || row.instanceUid !== instanceUid || row.retired || row.generation > generation) return;
    for (const { scopeId, window } of recounts) await recount?.(scopeId, window);
    Object.assign(row, { policy: structuredClone(policy), generation });
  }

  function find(instanceUid: string, hash: string): KeyRecord | undefined {
    if (instances.get(instanceUid)?.open !== true) return undefined;
    const row = live(instanceUid).find(({ kind, values }) => kind === 'key' && values.has(hash));
    const notAfter = row?.values.get(hash)?.notAfter;
    if (row?.policy === undefined || (notAfter !== undefined && notAfter <= clock.now())) return undefined;
    const key = structuredClone(row.policy) as KeyPolicy;
    const scopes = key.charges.map((scopeId) => structuredClone(rows.get(scopeId)?.policy));
    return scopes.every((scope) => scope !== undefined) ? { key, scopes: [key, ...scopes] } : undefined;
  }
}

function forget(row: Row | undefined, { hash, createdAt }: LiveValue): void {
  row?.values.delete(hash);
  row?.before.set(hash, createdAt);
}

const valuesOf = ({ values }: Row): ReadonlyArray<LiveValue> =>
  [...values.values()].sort((a, b) => a.createdAt - b.createdAt || (a.hash < b.hash ? -1 : 1));

function toClaim(row: Row): Claim {
  const { scopeId, kind, alias, holder, anchor, policy } = row;
  const claim = { scopeId, kind, alias, holder, anchor, values: valuesOf(row) };
  return policy === undefined ? claim : { ...claim, policy: structuredClone(policy) };
}
