// What can a cluster judge by itself where the admission function does not run? ValidatingAdmissionPolicies that repeat our rules.
import { SHARED_CREDENTIALS_ALLOWED, SHARED_CREDENTIALS_ANNOTATION } from './group.ts';
import { type Kind, kinds } from './kinds.ts';
import { toSpecSchema } from './manifest.ts';
import { type PolicyRule, rulesBelow } from './policy-rules.ts';
import { toValidation } from './structural.ts';

export interface PolicyValidation {
  readonly expression: string;
  readonly message: string;
  /** Names the entry of a list that is wrong; where it fails, `message` is told. */
  readonly messageExpression?: string;
}

export interface ValidatingAdmissionPolicy {
  readonly apiVersion: 'admissionregistration.k8s.io/v1';
  readonly kind: 'ValidatingAdmissionPolicy';
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly failurePolicy: 'Fail';
    readonly matchConstraints: { readonly resourceRules: ReadonlyArray<object> };
    readonly matchConditions: ReadonlyArray<{ readonly name: string; readonly expression: string }>;
    readonly variables?: ReadonlyArray<{ readonly name: string; readonly expression: string }>;
    readonly validations: ReadonlyArray<PolicyValidation>;
  };
}

/**
 * For each kind a policy and its binding, to be applied after the CRDs. A rule about the spec alone stands in the CRD too;
 * only here stands what needs an annotation. As everywhere, a mistake that was stored before is let be (DESIGN 5), and an
 * object that is being deleted is not judged.
 */
export function toPolicies(): ReadonlyArray<object> {
  return kinds.flatMap((kind) => {
    const policy = toPolicy(kind);
    return [policy, bindingOf(policy.metadata)];
  });
}

export function toPolicy(kind: Kind): ValidatingAdmissionPolicy {
  const rules = rulesBelow(toSpecSchema(kind));
  const shared = kind.kind === 'GatewayInstance' ? sharedCredentials : undefined;
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: metadataOf(kind),
    spec: {
      // Nothing of ours fails at run time by itself: what the schema accepts, every rule can read.
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: [kind.group],
            apiVersions: [kind.version],
            operations: ['CREATE', 'UPDATE'],
            resources: [kind.plural],
            scope: 'Namespaced',
          },
        ],
      },
      matchConditions: [{ name: 'not-being-deleted', expression: '!has(object.metadata.deletionTimestamp)' }],
      ...(shared !== undefined && { variables: shared.variables }),
      validations: [...nameOf(kind), ...(shared === undefined ? [] : [shared.validation]), ...rules.map(toPolicyRule)],
    },
  };
}

const toPolicyRule = ({ expression, path, message, example }: PolicyRule): PolicyValidation => ({
  expression,
  message: `${path}: ${message}`,
  ...(example !== undefined && {
    messageExpression: `${quoted(`${example.before}["`)} + ${example.key} + ${quoted(`"]${example.after}: ${message}`)}`,
  }),
});

/** A name never changes, so only who creates can be told. */
function nameOf({ nameRule }: Kind): PolicyValidation[] {
  if (nameRule === undefined) return [];
  const { rule, message } = toValidation(nameRule);
  return [
    {
      expression: `request.operation != 'CREATE' || ${rule.replaceAll('self.', 'object.')}`,
      message: `metadata.name: ${message}`,
    },
  ];
}

const isAllowed = (object: string) =>
  `(has(${object}.metadata.annotations) && '${SHARED_CREDENTIALS_ANNOTATION}' in ${object}.metadata.annotations && ` +
  `${object}.metadata.annotations['${SHARED_CREDENTIALS_ANNOTATION}'] == '${SHARED_CREDENTIALS_ALLOWED}')`;

const usesOf = (object: string) =>
  `(has(${object}.spec.models) ? ${object}.spec.models.filter(e, has(e.modelCredentials)) : [])`;

const SECRET = 'e.modelCredentials.nameRef';
const KEY = `e.identifier + '\\n' + ${SECRET}`;

/** Two different places of a list of up to 512 differ in one of these bits. */
const BITS = '[1, 2, 4, 8, 16, 32, 64, 128, 256]';
const half = (remainder: 0 | 1) => `variables.fresh.transformList(i, s, i / bit % 2 == ${remainder}, s)`;

/**
 * No two entries with one Secret, unless the annotation allows it; entries that shared it before may go on. Every pair is
 * compared in some division of the list into halves: each with each would be above the cost that the API server allows.
 */
const sharedCredentials = {
  variables: [
    { name: 'uses', expression: usesOf('object') },
    { name: 'secrets', expression: `variables.uses.map(e, ${SECRET})` },
    {
      name: 'before',
      expression: `request.operation == 'UPDATE' && !${isAllowed('oldObject')} ? ${usesOf('oldObject')}.map(e, ${KEY}) : []`,
    },
    { name: 'kept', expression: `variables.uses.filter(e, (${KEY}) in variables.before).map(e, ${SECRET})` },
    { name: 'fresh', expression: `variables.uses.filter(e, !((${KEY}) in variables.before)).map(e, ${SECRET})` },
    // For the message only.
    {
      name: 'shared',
      expression: `variables.uses.filter(e, !((${KEY}) in variables.before) && variables.secrets.indexOf(${SECRET}) != variables.secrets.lastIndexOf(${SECRET}))`,
    },
    { name: 'last', expression: 'variables.shared[size(variables.shared) - 1]' },
  ],
  validation: {
    expression:
      `${isAllowed('object')} || !(sets.intersects(variables.fresh, variables.kept) || ` +
      `${BITS}.exists(bit, sets.intersects(${half(0)}, ${half(1)})))`,
    message:
      'spec.models[].modelCredentials.nameRef: two entries have the same Secret; give each entry a Secret of its own, or allow sharing ' +
      `with the annotation ${SHARED_CREDENTIALS_ANNOTATION}: "${SHARED_CREDENTIALS_ALLOWED}"`,
    // The last entry that shares, and the first one that had the Secret already.
    messageExpression: [
      quoted('spec.models["'),
      'variables.last.identifier',
      quoted('"].modelCredentials.nameRef: "'),
      'variables.last.modelCredentials.nameRef',
      quoted('": is the Secret of entry "'),
      `variables.uses.filter(e, ${SECRET} == variables.last.modelCredentials.nameRef)[0].identifier`,
      quoted(
        '" already; give each entry a Secret of its own, or allow sharing with the annotation ' +
          `${SHARED_CREDENTIALS_ANNOTATION}: "${SHARED_CREDENTIALS_ALLOWED}"`,
      ),
    ].join(' + '),
  },
};

const metadataOf = ({ plural, group }: Kind) => ({
  name: `${plural}.${group}`,
  labels: { 'app.kubernetes.io/part-of': 'gateway-operator' },
});

const bindingOf = (metadata: ValidatingAdmissionPolicy['metadata']) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata,
  spec: { policyName: metadata.name, validationActions: ['Deny'] },
});

/** A CEL text; JSON's escapes are CEL's. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
