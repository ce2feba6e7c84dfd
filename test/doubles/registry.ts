// The double of the registry: claims, values and policies without a database.
import { createHash } from 'node:crypto';
import type { Clock } from '#core/ports/clock.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { KeyPolicy, KeyRecord, NamespacePolicy, Policies, ScopeId, ScopePolicy } from '#core/ports/policy.ts';
import { digestOf } from '#core/ports/policy-digest.ts';
import {
  type Adoption,
  type Claim,
  type InstanceRow,
  type LiveValue,
  MAX_RETAINED,
  type ObservedHolder,
  type PolicyWrite,
  type PreviousLedger,
  type Recount,
  type Registry,
  SAME_OBJECT,
  SAME_PLACE,
  type ScopeWrite,
  type ValueWrite,
} from '#core/ports/registry.ts';
import { policiesOf, sizeOf } from './policies.ts';

interface Deps {
  readonly clock: Clock;
  /** Recounts a window, if there are ledger rows: `createMemoryLedgerRows().recount`. */
  readonly recount?: (recount: Recount) => void | Promise<void>;
  /**
   * Called for scopes that come from another instance, if there are ledger rows: `createMemoryLedgerRows().moveScope`.
   */
  readonly moveScope?: (scopeId: ScopeId, instanceUid: string) => void;
}

interface Row extends Omit<Claim, 'values' | 'policy' | 'holder' | 'alias' | 'previousHolders'> {
  previousHolders?: ReadonlyArray<string>;
  alias: string;
  instanceUid: string;
  holder: Claim['holder'];
  readonly values: Map<string, LiveValue>;
  /** Values that no longer work. */
  readonly before: Map<string, LiveValue>;
  readonly secret: string;
  retired: boolean;
  /** The generation of the holder's spec from which the policy was made. */
  generation: number;
  policy?: ScopePolicy | KeyPolicy | NamespacePolicy;
}

interface Instance extends InstanceRow {
  open: boolean;
  predecessor?: { readonly uid: string; readonly since: number };
  adoptedBy?: string;
  /** The claims that were live when the instance was closed. */
  closedWith: ReadonlyArray<{ readonly row: Row; readonly values: ReadonlyArray<LiveValue> }>;
}

export type MemoryRegistry = Registry & { policies(instanceUid: string): Policies };

export function createMemoryRegistry({ clock, recount, moveScope }: Deps): MemoryRegistry {
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
      const hasOwn = before?.predecessor !== undefined || live(uid).length > 0;
      const adoption = ledger === undefined || hasOwn ? { ok: true as const } : ledgerAdoption(uid, ledger);
      if (!adoption.ok) return adoption;
      instances.set(uid, { ...before, ...instance, open: true, closedWith: [] });
      if (ledger !== undefined && !hasOwn) {
        close(ledger.uid);
        adopt(uid, ledger.uid);
      }
      return adoption;
    },
    closeInstance: async (uid) => close(uid),
    claims: async (instanceUid) => live(instanceUid).map(withOwners).map(withShortDigest),
    namespaceClaims: async (instanceUid) =>
      live(instanceUid)
        .filter(({ kind }) => kind === 'namespace')
        .map(withOwners),
    claimsOf: async (instanceUid, aliases) =>
      live(instanceUid)
        .filter((row) => aliases.some(({ kind, alias }) => row.kind === kind && row.alias === alias))
        .map(withOwners),
    putScope: async (write) => {
      const { instanceUid, holder, policy, value } = write;
      const row = claim(write);
      if (row?.holder.uid !== holder.uid || row.scopeId !== policy.scopeId) return 'taken';
      if ('retained' in policy && !isRetained(row) && retainedIn(instanceUid, holder.namespace) >= MAX_RETAINED)
        return 'too many';
      const published = value?.unlessLive === undefined ? undefined : row.values.get(value.unlessLive);
      if (published !== undefined && published.notAfter === undefined) return 'overtaken';
      const ended = value?.unlessEnded;
      if (ended !== undefined && hasEnded(row, ended)) return 'overtaken';
      const { generation: later } = row;
      if (later > write.generation && later !== write.overwrites) return { later };
      await writePolicy(instanceUid, write);
      if (row.retired) return 'taken';
      return value === undefined || addValue(row, value) ? 'written' : 'value taken';
    },
    instance: async (uid) => {
      const row = instances.get(uid);
      const place = row && { namespace: row.namespace, name: row.name };
      const { predecessor, open = false } = row ?? {};
      const hasClaims = live(uid).length > 0;
      return {
        now: clock.now(),
        isOpen: open,
        hasClaims,
        ...(predecessor && { predecessor }),
        ...(place && { place }),
      };
    },
    openInstances: async (cluster) =>
      [...instances.values()]
        .filter((row) => (row.open || live(row.uid).length > 0) && row.cluster === cluster)
        .map(({ uid, namespace, name }) => ({ uid, namespace, name, cluster })),
    endValues: async (scopeId, hashes, overlap, observed) => {
      const row = rows.get(scopeId);
      if (!isSame(row, observed)) return false;
      for (const value of hashes.flatMap((hash) => row?.values.get(hash) ?? [])) {
        if (overlap !== undefined) row?.values.set(value.hash, { notAfter: clock.now() + overlap, ...value });
        else forget(row, value);
      }
      return true;
    },
    removeValue: async (scopeId, hash) => {
      rows.get(scopeId)?.values.delete(hash);
    },
    retire: async (scopeIds, observed) => {
      const same = scopeIds.filter((scopeId) => isSame(rows.get(scopeId), observed));
      for (const scopeId of same) retire(rows.get(scopeId));
      return same.length === scopeIds.length;
    },
    policies: (instanceUid) => policiesOf((hash) => find(instanceUid, hash)),
  };
  return registry;

  /** Whether a live claim has the observed holder, and is retained as observed. */
  function isSame(row: Row | undefined, observed?: ObservedHolder): boolean {
    if (row === undefined || row.retired || observed === undefined) return true;
    const retainedIn = row.policy !== undefined && 'retained' in row.policy ? row.policy.retained : undefined;
    return row.holder.uid === observed.uid && retainedIn === observed.retained;
  }

  function retainedIn(instanceUid: string, namespace: string): number {
    return live(instanceUid).filter((row) => row.holder.namespace === namespace && isRetained(row)).length;
  }

  function withOwners(row: Row): Claim {
    const { policy } = row;
    const chargedScopeIds = policy?.kind === 'key' && 'retained' in policy ? policy.chargedScopeIds : [];
    return {
      ...toClaim(row),
      ...(chargedScopeIds.some((scopeId) => rows.get(scopeId)?.retired) && { isOwnerGone: true }),
    };
  }

  /** The live claim of the alias: created, taken over or moved here where the writer may. */
  function claim(write: ScopeWrite): Row | undefined {
    const { instanceUid, kind, alias, holder, policy, proof } = write;
    const isWantedByOthers = (row: Row) => row.kind === kind && row.alias === alias;
    const found = live(instanceUid).find(isWantedByOthers);
    if (found !== undefined) {
      const isInPlace = found.holder.namespace === holder.namespace && found.holder.name === holder.name;
      const isProven =
        kind === 'key' ? isLive(found, proof) && isHeir(found, write) : proof === SAME_PLACE && isInPlace;
      if (found.holder.uid !== holder.uid && isProven) takeOver(found, { holder });
      return found;
    }
    const moved = kind === 'key' && proof !== undefined ? retained(proof, write) : undefined;
    if (moved !== undefined) {
      const models = moved.policy !== undefined && 'furtherBudgets' in moved.policy ? moved.policy.furtherBudgets : [];
      for (const { scopeId } of [moved, ...(models ?? [])]) moveScope?.(scopeId, instanceUid);
      return takeOver(moved, { instanceUid, alias, holder });
    }
    const isRenamed = kind !== 'key' && proof === SAME_OBJECT;
    const renamed = isRenamed && live(instanceUid).find((row) => row.kind === kind && row.holder.uid === holder.uid);
    if (renamed) return Object.assign(renamed, { alias });
    const { scopeId } = policy;
    if (rows.has(scopeId)) return undefined;
    const anchor = Math.floor(policy.anchor / 1000) * 1000;
    const fresh = {
      values: new Map(),
      before: new Map(),
      retired: false,
      generation: 0,
      secret: `secret of ${scopeId}`,
    };
    const row = { scopeId, instanceUid, kind, alias, holder, anchor, ...fresh };
    rows.set(scopeId, row);
    return row;
  }

  /** Adds a value; false where another scope has it. */
  function addValue(row: Row, { hash, rotation = [...row.values.values()].at(-1)?.rotation }: ValueWrite): boolean {
    const owner = [...rows.values()].find(({ values }) => values.has(hash));
    if (owner === undefined) row.values.set(hash, makeValue(row, hash, rotation));
    return owner === undefined || owner === row;
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

  function retained(proof: string, write: ScopeWrite): Row | undefined {
    return [...rows.values()].find((row) => {
      return isLive(row, proof) && !row.retired && isRetained(row) && isHeir(row, write);
    });
  }

  /**
   * Whether the writer is in the namespace of the claim's holder, in the same cluster, or knows the uid of the holder or,
   * if the claim is not retained, of a previous one.
   */
  function isHeir(row: Row, { instanceUid, holder, formerHolders = [] }: ScopeWrite): boolean {
    const isSameCluster = instances.get(row.instanceUid)?.cluster === instances.get(instanceUid)?.cluster;
    const isNear = isSameCluster && row.holder.namespace === holder.namespace;
    const isRestored = !isRetained(row) && row.previousHolders?.some((uid) => formerHolders.includes(uid)) === true;
    return isNear || formerHolders.includes(row.holder.uid) || isRestored;
  }

  function takeOver(row: Row, change: Pick<Row, 'holder'> & Partial<Row>): Row {
    const { holder, previousHolders = [] } = row;
    const previous = [holder.uid, ...previousHolders].filter((uid) => uid !== change.holder.uid);
    return Object.assign(row, { ...change, previousHolders: previous.slice(0, 8), generation: 0 });
  }

  function ledgerAdoption(uid: string, ledger: PreviousLedger): Adoption {
    const old = instances.get(ledger.uid);
    if (uid === ledger.uid) return { ok: false, why: 'same' };
    if (old === undefined) return { ok: false, why: 'absent' };
    if (old.adoptedBy !== undefined) return { ok: false, why: 'adopted', successor: old.adoptedBy };
    return old.open && !ledger.isMissing ? { ok: false, why: 'open' } : { ok: true };
  }

  function adopt(uid: string, ledger: string): void {
    const [own, old] = [instances.get(uid), instances.get(ledger)];
    if (own === undefined || old === undefined) return;
    own.predecessor = { uid: ledger, since: clock.now() };
    old.adoptedBy = uid;
    for (const { row, values } of old.closedWith) {
      row.instanceUid = uid;
      row.retired = false;
      row.generation = 0;
      const isTaken = (hash: string) => [...rows.values()].some((other) => other.values.has(hash));
      for (const value of values) if (!isTaken(value.hash)) row.values.set(value.hash, value);
      const { policy } = row;
      const isBlocked = policy !== undefined && row.kind !== 'namespace' && !('retained' in policy);
      if (isBlocked) row.policy = { ...policy, blocked: true };
    }
  }

  function makeValue({ before, values }: Row, hash: string, rotation: string | undefined): LiveValue {
    const newest = Math.max(...[...values.values()].map(({ createdAt }) => createdAt + 1), 0);
    const createdAt = before.get(hash)?.createdAt ?? Math.max(clock.now(), newest);
    return { hash, createdAt, ...(rotation === undefined ? {} : { rotation }) };
  }

  async function writePolicy(instanceUid: string, { policy, generation, recounts = [] }: PolicyWrite): Promise<void> {
    const row = rows.get(policy.scopeId);
    if (row === undefined || row.instanceUid !== instanceUid || row.retired) return;
    for (const one of recounts) await recount?.(one);
    // As JSON, like the database keeps it: a member without a value is none.
    const written = policy.kind === undefined ? { ...row.policy, ...policy } : policy;
    Object.assign(row, { policy: JSON.parse(JSON.stringify(written)), generation });
  }

  function find(instanceUid: string, hash: string): KeyRecord | undefined {
    if (instances.get(instanceUid)?.open !== true) return undefined;
    const row = live(instanceUid).find(({ kind, values }) => kind === 'key' && values.has(hash));
    const notAfter = row?.values.get(hash)?.notAfter;
    if (row?.policy === undefined || (notAfter !== undefined && notAfter <= clock.now())) return undefined;
    const key = structuredClone(row.policy) as KeyPolicy;
    const isNamespace = ({ kind, alias }: Row) => kind === 'namespace' && alias === row.holder.namespace;
    const namespace = live(instanceUid).find(isNamespace)?.policy;
    if (namespace === undefined || !('chargedScopeIds' in namespace)) return undefined;
    const chargedIds = new Set([...key.chargedScopeIds, namespace.scopeId, ...namespace.chargedScopeIds]);
    const charged = [...chargedIds].map((scopeId) => structuredClone(rows.get(scopeId)?.policy));
    if (!charged.every((scope) => scope !== undefined)) return undefined;
    const scopes = [key, ...charged];
    return { key, scopes, holderUid: row.holder.uid, secret: row.secret, size: sizeOf(scopes) };
  }
}

const hash: Hash = (text) => createHash('sha256').update(text).digest('hex');

function forget(row: Row | undefined, value: LiveValue): void {
  row?.values.delete(value.hash);
  row?.before.set(value.hash, value);
}

/** Whether a rotation replaced the value, or it no longer works while another value without an end does. */
function hasEnded({ values, before }: Row, hash: string): boolean {
  const value = values.get(hash) ?? before.get(hash);
  if (value?.notAfter !== undefined) return true;
  return value !== undefined && !values.has(hash) && [...values.values()].some((one) => one.notAfter === undefined);
}

const isRetained = ({ policy }: Pick<Row, 'policy'>): boolean => policy !== undefined && 'retained' in policy;

const withShortDigest = (claim: Claim): Claim =>
  claim.policy?.retained === undefined
    ? claim
    : { ...claim, policy: { retained: claim.policy.retained, blocked: claim.policy.blocked } };

const valuesOf = ({ values }: Row): ReadonlyArray<LiveValue> =>
  [...values.values()]
    .map(({ rotation, ...value }) =>
      rotation === undefined || value.notAfter !== undefined ? value : { ...value, rotation },
    )
    .sort((a, b) => a.createdAt - b.createdAt || (a.hash < b.hash ? -1 : 1));

function toClaim(row: Row): Claim {
  const { scopeId, kind, alias, holder, anchor, policy, previousHolders } = row;
  const previous = previousHolders === undefined ? {} : { previousHolders };
  const claim = { scopeId, kind, alias, holder, ...previous, anchor, values: valuesOf(row) };
  return policy === undefined ? claim : { ...claim, policy: digestOf(structuredClone(policy), hash) };
}
