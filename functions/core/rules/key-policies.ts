// The key policy of a namespace: the first one of an instance's `keyPolicies` that selects the namespace. And what
// VirtualKeys lack under it.
import type { KeyPolicySpec, RequiredReference } from '#crds/kinds/key-policy.ts';
import { cutText } from '../json/text.ts';
import type { Finding } from './finding.ts';
import { type InstanceName, toPath } from './instance.ts';
import { type NamespaceLabels, selects } from './label-selector.ts';

type NamespaceSelection = Pick<KeyPolicySpec, 'namespaceSelector'>;

/** The policy that applies to the keys of the namespace; a policy without a selector applies to every namespace. */
export const policyOfNamespace = <P extends NamespaceSelection>(
  policies: ReadonlyArray<P> | undefined,
  namespace: NamespaceLabels,
): P | undefined => policies?.find(({ namespaceSelector = {} }) => selects(namespaceSelector, namespace));

/** Whether the policy applies to every namespace, whatever its labels. */
export function selectsAll({ namespaceSelector = {} }: NamespaceSelection): boolean {
  const { matchLabels = {}, matchExpressions = [] } = namespaceSelector;
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

/** Whether the labels of a namespace must be read to find its policy. If the first policy selects all, they need not. */
export function policyNeedsLabels([first]: ReadonlyArray<NamespaceSelection> = []): boolean {
  return first !== undefined && !selectsAll(first);
}

/**
 * The models that a VirtualKey may use: those of its list that are in the policy's list too. In both lists and in the
 * result, empty means all models. Undefined: no model is left, so the VirtualKey may use none.
 */
export function modelsWithin(
  own: ReadonlyArray<string>,
  policy: { readonly models?: ReadonlyArray<string> | undefined } | undefined,
): ReadonlyArray<string> | undefined {
  const allowed = policy?.models ?? [];
  if (allowed.length === 0) return own;
  if (own.length === 0) return allowed;
  const models = new Set(allowed);
  const left = own.filter((model) => models.has(model));
  return left.length === 0 ? undefined : left;
}

/** The fields that policies check of a VirtualKey, or of a User for which a VirtualKey is created. */
export interface PolicySubject {
  readonly kind: 'VirtualKey' | 'User';
  readonly models: ReadonlyArray<string>;
  readonly hasUser: boolean;
  /** Whether it names a Team, or its User is in one; undefined: unknown, because the User was not found. */
  readonly hasTeam: boolean | undefined;
}

/** A policy, and what messages about it name. */
export interface AppliedPolicy {
  readonly policy: Pick<KeyPolicySpec, 'name' | 'require' | 'models'>;
  readonly instance: InstanceName;
  /** `spec.blockedMessage` of the instance. */
  readonly blockedMessage: string | undefined;
}

/** References that the policy requires and the subject lacks, and models of the subject that the policy does not allow. */
export function policyViolations(subject: PolicySubject, applied: AppliedPolicy): Finding<'PolicyViolated'>[] {
  const { policy } = applied;
  const required = (policy.require ?? []).flatMap((field) => missingReference(field, subject, applied) ?? []);
  return [...required, ...modelsOutside(subject, applied)];
}

function missingReference(
  field: RequiredReference,
  { kind, hasUser, hasTeam }: PolicySubject,
  applied: AppliedPolicy,
): Finding<'PolicyViolated'> | undefined {
  if (field === 'userRef' ? hasUser : hasTeam !== false) return undefined;
  const path = kind === 'User' ? 'spec.teamRefs' : `spec.${field}`;
  const advice = {
    userRef: 'requires a User; add userRef',
    teamRef:
      kind === 'User'
        ? 'requires a Team for the VirtualKey of autoCreateKey; add a Team, or name the User in members of a Team'
        : 'requires a Team; add teamRef, or userRef of a User that is in a Team',
  };
  const message = `${describePolicy(applied)} ${advice[field]}. ${whomToAsk(applied)}`;
  // A Team that has the User in `members` may be in the same file, and a dry run does not create it.
  const effect = field === 'teamRef' && hasUser ? 'refuse-unless-dry-run' : 'refuse';
  return { rule: 'PolicyViolated', type: 'Required value', path, value: undefined, message, effect };
}

/** The maximum models that a message names, and the maximum characters of each. */
const MAX_NAMED = 8;
const MAX_NAME_LENGTH = 60;

function modelsOutside({ models }: PolicySubject, applied: AppliedPolicy): Finding<'PolicyViolated'>[] {
  const allowed = applied.policy.models ?? [];
  if (allowed.length === 0 || models.length === 0) return [];
  const isAllowed = new Set(allowed);
  if (models.every((model) => isAllowed.has(model))) return [];
  const named = allowed.slice(0, MAX_NAMED).map((model) => JSON.stringify(cutText(model, MAX_NAME_LENGTH)));
  const more = allowed.length > MAX_NAMED ? `, and ${allowed.length - MAX_NAMED} more` : '';
  const message = `${describePolicy(applied)} does not allow this model; choose among ${named.join(', ')}${more}. ${whomToAsk(applied)}`;
  return models.flatMap((value, index): Finding<'PolicyViolated'>[] => {
    const path = `spec.models[${index}]`;
    return isAllowed.has(value)
      ? []
      : [{ rule: 'PolicyViolated', type: 'Unsupported value', path, value, message, effect: 'refuse' }];
  });
}

export const describePolicy = ({ policy, instance }: AppliedPolicy): string =>
  `key policy ${JSON.stringify(policy.name)} of instance ${JSON.stringify(toPath(instance))}`;

/** Whom to ask for an exception: the instance's `blockedMessage`, in one line. */
const whomToAsk = ({ blockedMessage = '' }: AppliedPolicy): string =>
  blockedMessage.replaceAll(/\s+/g, ' ').trim() || 'For an exception ask the owner of the instance.';
