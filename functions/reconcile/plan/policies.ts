// Does the gateway act on what the specs say? The policy of each claimed member, written when it differs from the stored one.
import { parseDuration } from '#core/duration.ts';
import type { Finding } from '#core/finding.ts';
import type { Budget, KeyPolicy, RateLimits, ScopePolicy } from '#core/ports/policy.ts';
import type { Claim, PolicyWrite } from '#core/ports/registry.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { Action } from '../action.ts';
import type { Member } from '../world.ts';
import { aliasOf, instancePathOf } from '../world.ts';
import { about } from './about.ts';
import { budgetOf, windowOf } from './budget.ts';
import { modelScopesOf } from './model-budgets.ts';
import type { Outlook } from './outlook.ts';
import { wordsOf } from './words.ts';

/** Nothing when the stored policy says the same already, or when a scope that pays beside a key is not claimed yet. */
export function planPolicy(member: Member, claim: Claim, outlook: Outlook): Action[] {
  const policy = policyOf(member, claim, outlook);
  if (policy === undefined || sameJson(policy, claim.policy)) return [];
  const { generation } = member.metadata;
  const write: PolicyWrite = { policy, generation, ...recount(policy, claim, outlook.now) };
  const why =
    claim.policy === undefined
      ? 'the gateway does not know it yet'
      : `its ${differences(policy, claim.policy)} changed`;
  return [
    {
      action: 'WritePolicy',
      ...about(member, why),
      instance: instancePathOf(member),
      claim: aliasOf(member).key,
      write,
      ...(claim.policy === undefined ? { first: true as const } : {}),
    },
  ];
}

export function policyOf(member: Member, claim: Claim, outlook: Outlook): ScopePolicy | KeyPolicy | undefined {
  return member.kind === 'VirtualKey' ? keyPolicy(member, claim, outlook) : scopePolicy(member, claim);
}

function scopePolicy(member: User | Team, claim: Claim): ScopePolicy {
  return { ...shared(member, claim), kind: claim.kind, blocked: member.spec.blocked };
}

/** A key that names a user or team which is not there is refused by the gateway as blocked: somebody should pay and nobody would. */
function keyPolicy(key: VirtualKey, claim: Claim, outlook: Outlook): KeyPolicy | undefined {
  const payers = payersOf(key, outlook);
  if (payers.waiting) return undefined;
  const { namespace, name } = key.metadata;
  const [unpaid] = payers.missing;
  const expiresAt = expiryOf(key, claim);
  const models = modelScopesOf(key, claim, outlook.hash);
  return {
    ...shared(key, claim),
    kind: 'key',
    blocked: key.spec.blocked || unpaid !== undefined,
    ...(unpaid === undefined || key.spec.blocked ? {} : { unpaid: unpaid.rule }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    object: { namespace, name },
    charges: payers.claims.map(({ scopeId }) => scopeId),
    ...(models.length === 0 ? {} : { modelScopes: models }),
  };
}

function shared(member: Member, claim: Claim) {
  const budget = budgetOf(member);
  const limits = limitsOf(member);
  return {
    scopeId: claim.scopeId,
    name: claim.alias,
    models: member.spec.models,
    ...wordsOf(member),
    ...(budget === undefined ? {} : { budget }),
    ...(limits === undefined ? {} : { limits }),
    anchor: claim.anchor,
  };
}

function limitsOf({ spec }: Member): RateLimits | undefined {
  const { rpmLimit, tpmLimit, maxParallelRequests } = spec;
  const limits = {
    ...(rpmLimit === undefined ? {} : { rpmLimit }),
    ...(tpmLimit === undefined ? {} : { tpmLimit }),
    ...(maxParallelRequests === undefined ? {} : { maxParallelRequests }),
  };
  return Object.keys(limits).length === 0 ? undefined : limits;
}

/** Lifetime counts from the creation of the claim: it never slides, and is lengthened or cleared by an edit. */
export function expiryOf({ spec: { duration } }: VirtualKey, claim: Claim): number | undefined {
  const lifetime = duration === undefined ? undefined : parseDuration(duration);
  return lifetime === undefined ? undefined : claim.anchor + lifetime;
}

export interface Payers {
  readonly claims: ReadonlyArray<Claim>;
  readonly members: ReadonlyArray<{ readonly object: User | Team; readonly claim: Claim }>;
  readonly waiting: boolean;
  /** Who should pay and cannot. */
  readonly missing: ReadonlyArray<Finding>;
}

/** Who pays beside the key itself. A team that the key does not name itself and that has no claim simply does not pay. */
export function payersOf(key: VirtualKey, outlook: Outlook): Payers {
  const user = outlook.user(key);
  const teams = outlook.teams(key);
  const all = user === undefined ? teams : [user, ...teams];
  const paying = all.flatMap((payer) =>
    payer.state === 'paying' ? [{ object: payer.object as User | Team, claim: payer.claim }] : [],
  );
  return {
    claims: paying.map(({ claim }) => claim),
    members: paying,
    waiting: all.some(({ state }) => state === 'waiting'),
    missing: all.flatMap((payer) => (payer.state === 'unusable' ? [payer.why] : [])),
  };
}

/** Other windows than those that were counted: their sums are made anew from the entries inside them (LEDGER 4). */
function recount(policy: ScopePolicy | KeyPolicy, claim: Claim, now: number): Pick<PolicyWrite, 'recounts'> {
  if (claim.policy === undefined) return {};
  const before = new Map(scopesIn(claim.policy).map(({ scopeId, budget }) => [scopeId, budget]));
  const recounts = scopesIn(policy).flatMap(({ scopeId, budget }) => {
    if (budget === undefined || sameWindows(budget, before.get(scopeId))) return [];
    return [{ scopeId, window: windowOf(budget, claim.anchor, now) }];
  });
  return recounts.length === 0 ? {} : { recounts };
}

const scopesIn = (policy: ScopePolicy | KeyPolicy): ReadonlyArray<ScopePolicy> => [
  policy,
  ...('modelScopes' in policy ? (policy.modelScopes ?? []) : []),
];

const sameWindows = (a: Budget, b: Budget | undefined): boolean =>
  a.duration === b?.duration && a.alignment === b.alignment;

function differences(wanted: object, stored: object): string {
  const names = [...new Set([...Object.keys(wanted), ...Object.keys(stored)])];
  const member = (of: object, name: string): unknown => (of as Readonly<Record<string, unknown>>)[name];
  return names.filter((name) => !sameJson(member(wanted, name), member(stored, name))).join(', ');
}

/** PostgreSQL gives JSON back with its members in another order. Makes nothing on the way: it is asked a million times in a large sweep. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((one, index) => sameJson(one, b[index]));
  }
  return sameMembers(a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>);
}

function sameMembers(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  let more = 0;
  for (const name in a) {
    if (a[name] === undefined) continue;
    if (!sameJson(a[name], b[name])) return false;
    more += 1;
  }
  for (const name in b) if (b[name] !== undefined) more -= 1;
  return more === 0;
}
