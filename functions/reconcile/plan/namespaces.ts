// The scopes of namespaces: each key is charged to its namespace too, with the budget and limits of the key policy that
// the instance has for it. A namespace has one row on an instance, which is never retired: its keys are not rewritten.
import type { Reason } from '#core/conditions/reasons.ts';
import type { NamespacePolicy, PerKey, ScopeId } from '#core/ports/policy.ts';
import { digestOf } from '#core/ports/policy-digest.ts';
import { type Claim, namespaceHolder } from '#core/ports/registry.ts';
import { policyNeedsLabels, policyOfNamespace } from '#core/rules/key-policies.ts';
import { referenceFound } from '#core/rules/references.ts';
import type { KeyPolicySpec } from '#crds/kinds/key-policy.ts';
import type { Action } from '../action.ts';
import { differingMembers, sameJson } from '../json.ts';
import { budgetOf, policyLimitsOf, renewedBudget } from '../key/budget.ts';
import {
  claimKey,
  type InstanceView,
  idOf,
  isDeleted,
  type Path,
  type Problem,
  pathOf,
  teamAt,
  type World,
} from '../world.ts';
import { claimOf } from './access.ts';
import { toReferred } from './charged-scopes.ts';
import { hasLedger } from './conditions-instance.ts';
import type { PlanContext } from './context.ts';

/** The claim of a namespace with its policy; undefined: it has none yet, and no key of the namespace works. */
export function namespaceClaim({ claims }: Pick<InstanceView, 'claims'>, namespace: string): Claim | undefined {
  const claim = claims.get(claimKey('namespace', namespace));
  return claim?.policy === undefined ? undefined : claim;
}

/** Why the keys of a namespace do not work yet; undefined if its row is written. */
export function whyNoNamespaceRow(name: string, instance: InstanceView, world: World): Problem<Reason> | undefined {
  if (namespaceClaim(instance, name) !== undefined) return undefined;
  const isUnread = !world.namespaces.has(name) && policyNeedsLabels(instance.object.spec.keyPolicies);
  const message = isUnread
    ? `the labels of namespace ${name}, which select its key policy, could not be read; the log of the reconciler has the cause`
    : `namespace ${name} is not in the database of the instance yet; the reconciler adds it`;
  return failureOf(name, world) ?? { reason: 'Pending', message };
}

const failureOf = (name: string, { failures }: World) => failures.get(idOf('Namespace', { namespace: name, name }));

/** The rows of namespaces that differ from the instance's key policies. They are written before those of new keys. */
export function planNamespaceRows(path: Path, instance: InstanceView, context: PlanContext): Action[] {
  const { object, claims } = instance;
  if (object.spec.paused || isDeleted(object) || !hasLedger(instance)) return [];
  const teams = createTeams(instance, context);
  return namespacesOf(path, instance, context).flatMap((name): Action[] => {
    if (failureOf(name, context.world) !== undefined) return [];
    const claim = claims.get(claimKey('namespace', name));
    const policy = policyFor(name, { path, instance, claim, teams, context });
    if (policy === undefined) return [];
    const digest = digestOf(policy, context.hash);
    if (claim !== undefined && sameJson(digest, claim.policy)) return [];
    const why =
      claim === undefined
        ? 'it has its first VirtualKey on the instance'
        : `its ${differingMembers(digest, claim.policy ?? {}).join(', ')} changed`;
    const { generation } = object.metadata;
    return [
      {
        action: 'PutScope',
        kind: 'Namespace',
        namespace: name,
        name,
        why,
        instance: path,
        claimKind: 'namespace',
        alias: name,
        policy,
        generation,
        isNew: claim === undefined,
        holder: namespaceHolder(name).uid,
      },
    ];
  });
}

/** The namespaces that have a row, or have keys, also retained keys. */
function namespacesOf(path: Path, { claims }: InstanceView, { access, keysOf }: PlanContext): ReadonlyArray<string> {
  const names = new Set<string>();
  for (const { kind, holder } of claims.values())
    if (kind === 'namespace' || kind === 'key') names.add(holder.namespace);
  for (const key of keysOf(path)) {
    const { namespace } = key.metadata;
    if (!names.has(namespace) && !isDeleted(key) && access(key).state === 'allowed') names.add(namespace);
  }
  return [...names];
}

interface NamespaceCase {
  readonly path: Path;
  readonly instance: InstanceView;
  /** Absent: the namespace has no row yet. */
  readonly claim: Claim | undefined;
  readonly teams: Teams;
  readonly context: PlanContext;
}

/** The policy to write. Undefined while the labels or the Team are not known: the last policy stays in force. */
function policyFor(
  name: string,
  { path, instance, claim, teams, context }: NamespaceCase,
): NamespacePolicy | undefined {
  const { keyPolicies } = instance.object.spec;
  const labels = context.world.namespaces.get(name);
  if (labels === undefined && policyNeedsLabels(keyPolicies)) return undefined;
  const keyPolicy = policyOfNamespace(keyPolicies, { name, labels: labels ?? {} });
  const team = teams(keyPolicy);
  if (team === 'unknown') return undefined;
  // Whole seconds, because people read the dates that are counted from this time.
  const anchor = claim?.anchor ?? Math.floor(instance.databaseNow / 1000) * 1000;
  return {
    scopeId: claim?.scopeId ?? '',
    kind: 'namespace',
    name,
    of: path,
    blocked: team.missing !== undefined,
    models: keyPolicy?.models ?? [],
    anchor,
    policyName: keyPolicy?.name,
    chargedScopeIds: team.scopeIds,
    missingOwnerReason: team.missing,
    ...budgetsOf(keyPolicy, claim?.policy, instance.object.metadata.generation),
  };
}

/**
 * Budgets and limits for the namespace and for each of its keys. A window that changes, or comes back, gets a larger
 * `sinceGeneration` than all previous windows. The generation of the instance is not enough for this: an edit of the
 * namespace's labels also changes its policy.
 */
function budgetsOf(
  { perNamespace, perKey }: Pick<KeyPolicySpec, 'perNamespace' | 'perKey'> = {},
  before: Claim['policy'],
  instanceGeneration: number,
): Pick<NamespacePolicy, 'budget' | 'limits' | 'perKey' | 'lastSince'> {
  const edit = { isNew: before === undefined, generation: Math.max(instanceGeneration, (before?.lastSince ?? 0) + 1) };
  const budget = renewedBudget(perNamespace && budgetOf({ spec: perNamespace }), before?.budget, edit);
  const ofKey = renewedBudget(perKey && budgetOf({ spec: perKey }), before?.perKey?.budget, edit);
  const limitsOfKey = perKey && policyLimitsOf({ spec: perKey });
  const lastSince = Math.max(before?.lastSince ?? 0, budget?.sinceGeneration ?? 0, ofKey?.sinceGeneration ?? 0);
  const perKeyPolicy: PerKey | undefined =
    ofKey === undefined && limitsOfKey === undefined ? undefined : { budget: ofKey, limits: limitsOfKey };
  return {
    budget,
    limits: perNamespace && policyLimitsOf({ spec: perNamespace }),
    perKey: perKeyPolicy,
    lastSince: lastSince === 0 ? undefined : lastSince,
  };
}

/** The Team of a key policy. `unknown`: its claim is written later in this run, or it cannot be read in this run. */
type PolicyTeam = { readonly scopeIds: ReadonlyArray<ScopeId>; readonly missing?: string } | 'unknown';
type Teams = (keyPolicy: KeyPolicySpec | undefined) => PolicyTeam;

const NO_TEAM: PolicyTeam = { scopeIds: [] };

/** Finds each Team once, for all namespaces. */
function createTeams(instance: InstanceView, context: PlanContext): Teams {
  const known = new Map<string, PolicyTeam>();
  return (keyPolicy) => {
    const name = keyPolicy?.teamRef?.name;
    if (name === undefined) return NO_TEAM;
    const team = known.get(name) ?? findTeam(name, instance, context);
    known.set(name, team);
    return team;
  };
}

function findTeam(name: string, instance: InstanceView, { world, access }: PlanContext): PolicyTeam {
  const { namespace, name: instanceName } = instance.object.metadata;
  const path = pathOf({ namespace, name });
  const object = teamAt(world, path);
  // The objects of its namespace are too large together, so that the Team is not in the world.
  if (object === undefined && isNotLoaded(path, instance, world)) return 'unknown';
  const reference = { kind: 'Team', path: 'spec.keyPolicies', name, namespace } as const;
  const missing = referenceFound(reference, toReferred(object), { namespace, name: instanceName });
  if (missing !== undefined || object === undefined) return { scopeIds: [], missing: missing?.rule ?? 'TeamNotFound' };
  const found = access(object);
  if (found.state === 'notAllowed') return { scopeIds: [], missing: 'TeamNotReady' };
  const { state, claim } = claimOf(object, instance);
  if (found.state !== 'allowed') return 'unknown';
  if (state === 'ours') return { scopeIds: [claim.scopeId] };
  const hasFailed = world.failures.has(idOf(object.kind, object.metadata));
  return hasFailed || state === 'taken' ? { scopeIds: [], missing: 'TeamNotReady' } : 'unknown';
}

const isNotLoaded = (path: Path, { claims }: InstanceView, { notLoaded }: World): boolean =>
  notLoaded.size > 0 &&
  claims.values().some(({ kind, holder }) => kind === 'team' && pathOf(holder) === path && notLoaded.has(holder.uid));
