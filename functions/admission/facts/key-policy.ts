// Facts about the key policy of a namespace: the policy itself, which an instance has, and whether an object is in a Team.

import * as z from 'zod';
import { listOf } from '#core/json/json.ts';
import { toFieldSelector } from '#core/ports/cluster.ts';
import { policyOfNamespace } from '#core/rules/key-policies.ts';
import type { NamespaceLabels } from '#core/rules/label-selector.ts';
import { AllowedNamespaces } from '#crds/kinds/allowed-namespaces.ts';
import { KeyPolicySpec } from '#crds/kinds/key-policy.ts';
import { LabelSelector } from '#crds/kinds/label-selector.ts';
import type { ConnectionRef } from '#crds/kinds/shared-fields.ts';
import { teams, users } from '#crds/names/resources.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import type { Metadata } from '../subject.ts';
import { belongsTo, type FactContext, INSTANCE_FIELD, isLive } from './context.ts';

export interface PolicyFacts {
  /** The key policy of the object's namespace. */
  readonly policy: KeyPolicySpec | undefined;
  /** `spec.blockedMessage` of the instance. */
  readonly blockedMessage: string | undefined;
}

/** Only the selectors of policies are validated: 64 policies together may name 32,768 models. */
const Access = z.object({
  allowedNamespaces: AllowedNamespaces.prefault({}),
  keyPolicies: z.array(z.looseObject({ namespaceSelector: LabelSelector.optional() })).optional(),
  blockedMessage: z.string().optional(),
});

/** The fields of an instance that decide about objects of other namespaces; undefined: they cannot be read. */
export const readAccess = (spec: unknown): z.output<typeof Access> | undefined =>
  Access.safeParse(isMap(spec) ? spec : {}).data;

/** The whole policy of the namespace. Undefined if none applies, or if it is malformed, which the CRD rejects. */
export const readPolicy = (
  { keyPolicies }: z.output<typeof Access>,
  namespace: NamespaceLabels,
): KeyPolicySpec | undefined => KeyPolicySpec.safeParse(policyOfNamespace(keyPolicies, namespace)).data;

/** How an object may be in a Team: it names a Team itself, or its User is in one. */
export interface Membership {
  readonly hasOwnTeam: boolean;
  /** The User that may be in a Team: that of a key, or the object itself. */
  readonly user: string | undefined;
  readonly isUserItself: boolean;
}

/** The maximum Teams of a namespace that are read to find those that have a User in `members`. */
const MAX_TEAMS = 500;

interface MemberObject {
  readonly metadata: Metadata;
  readonly spec: { readonly connectionRef: ConnectionRef };
}

/**
 * Whether the object has a Team. Undefined (unknown) if its User is not found, which another check reports, or if the
 * namespace has more Teams than are read. Also undefined if the policy does not require a Team.
 */
export async function findMembership(
  membership: Membership | undefined,
  { policy }: PolicyFacts,
  { metadata, spec }: MemberObject,
  { cluster }: FactContext,
): Promise<boolean | undefined> {
  if (membership === undefined || policy?.require?.includes('teamRef') !== true) return undefined;
  const { namespace } = metadata;
  const { hasOwnTeam, user: name, isUserItself } = membership;
  if (hasOwnTeam) return true;
  if (name === undefined) return false;
  if (!isUserItself) {
    const user = await cluster.get(users, namespace, name);
    if (user === undefined) return undefined;
    if (listOf(isMap(user.spec) ? user.spec.teamRefs : undefined).length > 0) return true;
  }
  const { instanceRef } = spec.connectionRef;
  const fieldSelector = toFieldSelector({ [INSTANCE_FIELD]: instanceRef.name });
  let isMember = false;
  let isPartial = false;
  await cluster.listPages(teams, { namespace, fieldSelector, limit: MAX_TEAMS }, (page, hasMore) => {
    isPartial = hasMore;
    isMember ||= page.some(
      (team) =>
        isLive(team) &&
        belongsTo(team, instanceRef) &&
        listOf(isMap(team.spec) ? team.spec.members : undefined).some((one) => isMap(one) && one.name === name),
    );
  });
  return isMember || (isPartial ? undefined : false);
}
