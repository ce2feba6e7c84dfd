// A scope object's access to its instance, and the state of its claim there.

import type { Reason } from '#core/conditions/reasons.ts';
import { cutText } from '#core/json/text.ts';
import type { Claim } from '#core/ports/registry.ts';
import { allowsNamespace, needsLabels } from '#core/rules/allowed-namespaces.ts';
import { type Finding, toText } from '#core/rules/finding.ts';
import { instanceIsDeleted, instanceNotFound, namespaceNotAllowed } from '#core/rules/instance.ts';
import {
  aliasOf,
  type InstanceView,
  instancePathOf,
  isDeleted,
  type Problem,
  retainedSecret,
  type ScopeObject,
  type World,
} from '../world.ts';
import type { InstanceConditions } from './conditions-instance.ts';

/**
 * A scope object's access to its instance; `why`: the instance keeps the scope object from working. `missing`: the
 * instance does not exist, or is being deleted. `paused`: nothing may be done, or the instance could not be observed.
 * `unknown`: the instance selects namespaces by labels, and those of the scope object's namespace could not be read, so
 * nothing is given and nothing withdrawn. `notAllowed`: the instance does not allow the namespace; a scope object that
 * it never allowed gets the same message as for a missing one. `unreachable`: the instance's database cannot be
 * reached.
 */
export type InstanceAccess =
  | {
      readonly state: 'missing' | 'paused' | 'unknown' | 'notAllowed';
      readonly instance: InstanceView | undefined;
      readonly why: Problem<Reason>;
    }
  | {
      readonly state: 'unreachable' | 'allowed';
      readonly instance: InstanceView;
      readonly instanceConditions: InstanceConditions;
      readonly why: Problem<Reason> | undefined;
    };

/**
 * The claim of a scope object's alias. `free`: no object has it. `ours`: the scope object has the claim. `taken`:
 * another object has it. `orphaned`: its holder is gone, or exists only as the Secret of a retained VirtualKey.
 */
export type ClaimState =
  | { readonly state: 'free'; readonly claim?: undefined }
  | { readonly state: 'ours' | 'orphaned' | 'taken'; readonly claim: Claim };

/** The claim on an instance that does not exist or is not known. */
export const NO_CLAIM: ClaimState = { state: 'free' };

type Evaluate = (view: InstanceView) => InstanceConditions;

export function accessOf(scopeObject: ScopeObject, world: World, evaluate: Evaluate): InstanceAccess {
  const path = instancePathOf(scopeObject);
  const instance = world.instances.get(path);
  const ref = scopeObject.spec.connectionRef.instanceRef;
  const unusable = (how: string) =>
    ({ reason: 'InstanceNotReady', message: cutText(`GatewayInstance ${path} is ${how}`) }) as const;
  const denied = (finding: Finding<Reason>) => ({
    instance,
    why: { reason: finding.rule, message: toText([finding]) },
  });
  const paused = { state: 'paused', instance, why: unusable('paused') } as const;
  if (world.unobserved.has(path)) return paused;
  const { namespace } = scopeObject.metadata;
  if (instance === undefined) return { state: 'missing', ...denied(instanceNotFound(ref, namespace)) };
  const isAllowed = isNamespaceAllowed(instance, namespace, world);
  const wasAllowed =
    isAllowed === true || instance.claims.get(aliasOf(scopeObject).key)?.holder.uid === scopeObject.metadata.uid;
  const neverAllowed = wasAllowed ? undefined : instanceNotFound(ref, namespace);
  if (isDeleted(instance.object)) return { state: 'missing', ...denied(neverAllowed ?? instanceIsDeleted(ref)) };
  if (isAllowed === undefined) {
    const why = unusable(
      `not usable now: the labels of namespace ${namespace} could not be read; the log of the reconciler has the cause`,
    );
    return { state: 'unknown', instance, why };
  }
  if (neverAllowed !== undefined) return { state: 'notAllowed', ...denied(neverAllowed) };
  if (instance.object.spec.paused) return paused;
  if (!isAllowed) return { state: 'notAllowed', ...denied(namespaceNotAllowed(ref, namespace)) };
  const instanceConditions = evaluate(instance);
  const { ready, workload } = instanceConditions;
  // A rollout of a few seconds would otherwise change the condition of every VirtualKey twice.
  const isRolloutHidden = ready === workload.check && workload.isRolling && wasReady(scopeObject);
  const why = ready.ok || isRolloutHidden ? undefined : unusable(`not ready: ${ready.reason}: ${ready.message}`);
  return { state: instance.database.ok ? 'allowed' : 'unreachable', instance, instanceConditions, why };
}

/** Undefined: the answer depends on labels that could not be read. */
export function isNamespaceAllowed(
  { object: { metadata, spec } }: InstanceView,
  name: string,
  { namespaces }: World,
): boolean | undefined {
  const labels = namespaces.get(name);
  if (labels === undefined && needsLabels(spec.allowedNamespaces)) return undefined;
  return allowsNamespace(spec.allowedNamespaces, metadata.namespace, { name, labels: labels ?? {} });
}

const wasReady = ({ status }: ScopeObject): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;

export function claimOf(scopeObject: ScopeObject, { claims, orphanedClaims }: InstanceView): ClaimState {
  const claim = claims.get(aliasOf(scopeObject).key);
  if (claim === undefined) return { state: 'free' };
  if (claim.holder.uid === scopeObject.metadata.uid) return { state: 'ours', claim };
  const isOrphaned = retainedSecret(claim) !== undefined || orphanedClaims.has(claim.scopeId);
  return { state: isOrphaned ? 'orphaned' : 'taken', claim };
}
