// The scene of the promises of registries: two open instances, claims by name, and keys that work.
import type { KeyPolicy, Policies, ScopePolicy } from './policy.ts';
import type { Claim, Holder, Registry, ScopeWrite } from './registry.ts';

export interface RegistryUnderTest {
  readonly registry: Registry;
  policies(instanceUid: string): Policies;
}

export const INSTANCE = { uid: 'instance-1', namespace: 'apps', name: 'gateway' };
export const OTHER = { uid: 'instance-2', namespace: 'apps', name: 'other' };

export const holder = (name: string): Holder => ({ uid: `uid-of-${name}`, namespace: 'apps', name });
/** As long as a SHA-256 of it. */
export const hash = (text: string) => text.padStart(64, text.slice(0, 1));

/** With both instances open. */
export async function openedRegistry(make: () => Promise<RegistryUnderTest>): Promise<RegistryUnderTest> {
  const under = await make();
  await under.registry.openInstance(INSTANCE);
  await under.registry.openInstance(OTHER);
  return under;
}

/** `under` is asked anew for each call: each test has a registry of its own. */
export function registryScene(under: () => RegistryUnderTest) {
  const claim = async (alias: string, kind: 'key' | 'user' | 'team' = 'key', by = alias): Promise<Claim> => {
    const outcome = await under().registry.claim(INSTANCE.uid, kind, alias, holder(by));
    if (!outcome.won) throw new Error(`${alias} is ${outcome.by.name}'s`);
    return outcome.claim;
  };
  const find = (value: string) => under().policies(INSTANCE.uid).find(value);
  const write = (...written: ReadonlyArray<ScopePolicy | KeyPolicy>) =>
    under().registry.writePolicies(
      INSTANCE.uid,
      written.map((policy) => ({ policy, generation: 1 })),
    );
  /** A key that works: claimed, with a value and a policy. */
  const workingKey = async (alias: string, value: string, more: Partial<KeyPolicy> = {}) => {
    const claimed = await claim(alias);
    const policy = keyPolicy(claimed, more);
    await under().registry.addValue(claimed.scopeId, value);
    await write(policy);
    return { claimed, policy };
  };
  return { claim, find, write, workingKey };
}

/** Each of another scope. */
export function scopeWrite(
  alias: string,
  { kind = 'key', by = alias, value }: { kind?: ScopeWrite['kind']; by?: string; value?: ScopeWrite['value'] } = {},
): ScopeWrite {
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
  return { ...scopePolicy(claim), kind: 'key', object: { namespace, name }, charges: [], ...more };
}
