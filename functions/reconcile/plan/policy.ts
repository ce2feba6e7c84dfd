// The policy of a member: what the gateway acts on, made of its spec and of the claims of those who pay beside it.

import { parseMoney } from '#core/money.ts';
import type { KeyPolicy, RateLimits, ScopePolicy, Wording } from '#core/ports/policy.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { budgetOf } from '../key/budget.ts';
import { expiryOf } from '../key/rotation.ts';
import type { Member } from '../world.ts';
import type { PlanContext } from './context.ts';

/** The claim of a scope, or what is known of it before it is claimed: when. Ids of new scopes are given when they are written. */
export type ScopeOf = Pick<Claim, 'scopeId' | 'anchor' | 'policy'>;

/** The policy to write. Undefined while a user or team that pays beside a key does not have its claim yet. */
export function policyOf(member: Member, scope: ScopeOf, context: PlanContext): ScopePolicy | KeyPolicy | undefined {
  if (member.kind === 'VirtualKey') return keyPolicyOf(member, scope, context);
  const kind = member.kind === 'User' ? 'user' : 'team';
  return { ...commonOf(member, scope), kind, blocked: member.spec.blocked };
}

/** A key that names a user or team which is not there is refused by the gateway as blocked: somebody should pay and nobody would. */
function keyPolicyOf(key: VirtualKey, scope: ScopeOf, context: PlanContext): KeyPolicy | undefined {
  const { paying, unpaid, isWaiting } = context.payers(key);
  if (isWaiting) return undefined;
  const { namespace, name } = key.metadata;
  const [missing] = unpaid;
  const expiresAt = expiryOf(key, scope);
  const models = modelScopesOf(key, scope);
  return {
    ...commonOf(key, scope),
    kind: 'key',
    blocked: key.spec.blocked || missing !== undefined,
    ...(missing === undefined || key.spec.blocked ? {} : { unpaid: missing.rule }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    object: { namespace, name },
    charges: paying.map(({ claim }) => claim.scopeId),
    ...(models.length === 0 ? {} : { modelScopes: models }),
  };
}

function commonOf(member: Member, { scopeId, anchor }: ScopeOf) {
  const { spec } = member;
  const budget = budgetOf(member);
  const limits = limitsOf(spec);
  const name =
    member.kind === 'VirtualKey'
      ? member.spec.keyAlias
      : member.kind === 'User'
        ? member.spec.userEmail
        : member.spec.teamAlias;
  return {
    ...{ scopeId, name, models: spec.models, ...wordsOf(member) },
    ...(budget === undefined ? {} : { budget }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    anchor,
  };
}

function limitsOf({ rpmLimit, tpmLimit, maxParallelRequests }: Member['spec']): RateLimits {
  return {
    ...(rpmLimit === undefined ? {} : { rpmLimit }),
    ...(tpmLimit === undefined ? {} : { tpmLimit }),
    ...(maxParallelRequests === undefined ? {} : { maxParallelRequests }),
  };
}

/** For people: for the log of requests, for reports of spend. */
function wordsOf(member: Member): Wording {
  if (member.kind === 'Team') return {};
  if (member.kind === 'User') return member.spec.userAlias === undefined ? {} : { alias: member.spec.userAlias };
  const { tags = [], metadata = {} } = member.spec;
  return { ...(tags.length === 0 ? {} : { tags }), ...(Object.keys(metadata).length === 0 ? {} : { metadata }) };
}

/** Budgets for single models, by name; windows are aligned and anchored as the key's own. */
function modelScopesOf(key: VirtualKey, { anchor, policy }: ScopeOf): ReadonlyArray<ScopePolicy> {
  const { modelMaxBudget = {}, budgetWindow: alignment, keyAlias: of } = key.spec;
  const known = policy !== undefined && 'modelScopes' in policy ? (policy.modelScopes ?? []) : [];
  const idOf = (model: string) => known.find(({ name }) => name === model)?.scopeId ?? '';
  return Object.entries(modelMaxBudget)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([model, { maxBudget, budgetDuration }]) => ({
      ...{ scopeId: idOf(model), kind: 'model', name: model, of, blocked: false, models: [] },
      budget: { limit: String(parseMoney(maxBudget)), duration: budgetDuration, alignment },
      anchor,
    }));
}
