// The scenario of the promises of registries: two open instances, claims by name, and keys that work.
import { recordOf } from '../../../../test/doubles/policies.ts';
import type { FoundRecord, KeyPolicy, KeyRecord, NamespacePolicy, Policies, ScopePolicy } from '../policy.ts';
import {
  type Claim,
  type Holder,
  namespaceHolder,
  type Registry,
  type ScopeOutcome,
  type ScopeWrite,
} from '../registry.ts';

export interface RegistryUnderTest {
  readonly registry: Registry;
  policies(instanceUid: string): Policies;
}

export const INSTANCE = { uid: 'instance-1', namespace: 'apps', name: 'gateway' };
export const OTHER = { uid: 'instance-2', namespace: 'apps', name: 'other' };

export const holder = (name: string): Holder => ({ uid: `uid-of-${name}`, namespace: 'apps', name });
/** A text in place of its SHA-256, of the same length. */
export const hash = (text: string) => text.padStart(64, text.slice(0, 1));

/** A claim with the whole policy that was written. */
export interface WrittenScope extends Omit<Claim, 'policy'> {
  readonly policy: WholeWrite['policy'];
}

export interface WholeWrite extends ScopeWrite {
  readonly policy: ScopePolicy | KeyPolicy;
}

/** A registry with both instances open, whose namespaces have rows without a limit as soon as keys are looked up. */
export async function openRegistry(make: () => Promise<RegistryUnderTest>): Promise<RegistryUnderTest> {
  const under = await openWithNamespaces(make);
  const { registry, policies } = under;
  return {
    registry: {
      ...registry,
      claims: async (uid) => (await registry.claims(uid)).filter(({ kind }) => kind !== 'namespace'),
    },
    policies: (uid) => ({
      find: async (...asked) => {
        const claims = await registry.claims(uid);
        const namespaces = new Set(claims.map(({ holder: { namespace } }) => namespace));
        for (const { kind, alias } of claims) if (kind === 'namespace') namespaces.delete(alias);
        for (const name of namespaces) await mustBeWritten(registry.putScope(namespaceWrite(name, {}, uid)));
        const found = await policies(uid).find(...asked);
        const isRead = (record: FoundRecord): record is KeyRecord => record?.key !== undefined;
        return new Map([...found].map(([one, record]) => [one, isRead(record) ? withoutNamespace(record) : record]));
      },
    }),
  };
}

/** The same; tests write the rows of namespaces. */
export async function openWithNamespaces(make: () => Promise<RegistryUnderTest>): Promise<RegistryUnderTest> {
  const under = await make();
  await under.registry.openInstance(INSTANCE);
  await under.registry.openInstance(OTHER);
  return under;
}

const withoutNamespace = (record: KeyRecord): KeyRecord => ({
  ...record,
  scopes: record.scopes.filter(({ kind }) => kind !== 'namespace'),
});

/** The write of the row of a namespace. */
export function namespaceWrite(
  name: string,
  more: Partial<NamespacePolicy> = {},
  instanceUid = INSTANCE.uid,
): ScopeWrite & { readonly policy: NamespacePolicy } {
  const at = {
    kind: 'namespace',
    alias: name,
    scopeId: crypto.randomUUID(),
    anchor: Date.UTC(2026, 10, 21, 12),
  } as const;
  const policy = { ...scopePolicy(at), kind: 'namespace', of: 'apps/gateway', chargedScopeIds: [], ...more } as const;
  return { instanceUid, kind: 'namespace', alias: name, holder: namespaceHolder(name), policy, generation: 1 };
}

/** `under` is called for each operation: each test has its own registry. */
export function registryScenario(under: () => RegistryUnderTest) {
  const find = (value: string) => recordOf(under().policies(INSTANCE.uid), value);
  const claims = () => under().registry.claims(INSTANCE.uid);
  /** A scope as the registry lists it, with its policy. */
  const claim = async (
    alias: string,
    kind: Claim['kind'] = 'key',
    more: Partial<KeyPolicy> = {},
  ): Promise<WrittenScope> => {
    const write = scopeWrite(alias, { kind });
    const policy = { ...write.policy, ...more };
    await mustBeWritten(under().registry.putScope({ ...write, policy }));
    const [listed] = await under().registry.claimsOf(INSTANCE.uid, [write]);
    if (listed === undefined) throw new Error(`${alias} is not listed`);
    return { ...listed, policy };
  };
  /** Writes the scope of a claim again, with these changes. */
  const put = (claimed: WrittenScope, more: Partial<ScopeWrite> = {}) =>
    under().registry.putScope({ ...toWrite(claimed), ...more });
  const write = async (claimed: WrittenScope, more: Partial<KeyPolicy>) => {
    const policy = { ...toWrite(claimed).policy, ...more };
    await mustBeWritten(put(claimed, { policy }));
    return policy;
  };
  const addValue = async (claimed: WrittenScope, value: string, rotation?: string) =>
    mustBeWritten(put(claimed, { value: { hash: value, ...(rotation === undefined ? {} : { rotation }) } }));
  /** A key that works: claimed, with a value and a policy. */
  const workingKey = async (alias: string, value: string, more: Partial<KeyPolicy> = {}) => {
    const claimed = await claim(alias, 'key', more);
    await addValue(claimed, value);
    return { claimed, policy: claimed.policy };
  };
  return { find, claims, claim, put, write, addValue, workingKey };
}

async function mustBeWritten(outcome: Promise<ScopeOutcome>): Promise<void> {
  const result = await outcome;
  if (result !== 'written') throw new Error(`the scope is not written, but ${result}`);
}

/** The write that made a claim. */
export function toWrite({ kind, alias, holder: by, policy }: WrittenScope, instanceUid = INSTANCE.uid): WholeWrite {
  return { instanceUid, kind, alias, holder: by, policy, generation: 1 };
}

/** A write of a new scope. */
export function scopeWrite(
  alias: string,
  { kind = 'key', by = alias, value }: { kind?: ScopeWrite['kind']; by?: string; value?: ScopeWrite['value'] } = {},
): WholeWrite {
  const at = { kind, alias, holder: holder(by) };
  const claim = { ...at, scopeId: crypto.randomUUID(), anchor: Date.UTC(2026, 10, 21, 12) };
  const policy = kind === 'key' ? keyPolicy(claim) : scopePolicy(claim);
  return { ...at, instanceUid: INSTANCE.uid, policy, generation: 1, ...(value === undefined ? {} : { value }) };
}

type KeyedClaim = Pick<Claim, 'scopeId' | 'kind' | 'alias' | 'anchor' | 'holder'>;

export function scopePolicy(
  { scopeId, kind, alias, anchor }: Omit<KeyedClaim, 'holder'>,
  more: Partial<ScopePolicy> = {},
): ScopePolicy {
  return { scopeId, kind, name: alias, blocked: false, models: [], anchor, ...more };
}

export function keyPolicy(claim: KeyedClaim, more: Partial<KeyPolicy> = {}): KeyPolicy {
  const { namespace, name } = claim.holder;
  return { ...scopePolicy(claim), kind: 'key', object: { namespace, name }, chargedScopeIds: [], ...more };
}
