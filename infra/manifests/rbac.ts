// Who may do what in the cluster? One table of what each function calls, from which access.yaml is generated; a test takes each right away and sees a run fail.
import { Document, type YAMLMap, type YAMLSeq } from 'yaml';
import { AUTH_GROUP, INSTANCE_GROUP } from '#crds/group.ts';

type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

/** One rule: what is called, and why. */
export interface Grant {
  readonly group: string;
  readonly resources: readonly string[];
  readonly verbs: readonly Verb[];
  /** Only these objects. */
  readonly names?: readonly string[];
  readonly why?: string;
}

/** The operator's own. */
export const NAMESPACE = 'gateway-operator';
const CORE = '';

/** What the API server calls the service account of a function. */
export const accountUser = (account: 'admission' | 'reconcile'): string =>
  `system:serviceaccount:${NAMESPACE}:${account}`;

/** Admission reads what a spec refers to, and asks whether its author may read it too. */
export const ADMISSION: readonly Grant[] = [
  { group: INSTANCE_GROUP, resources: ['gatewayinstances'], verbs: ['get'] },
  {
    group: AUTH_GROUP,
    resources: ['virtualkeys', 'users', 'teams'],
    verbs: ['get', 'list'],
    why: 'Listed by selectable field, never all of them.',
  },
  { group: CORE, resources: ['secrets', 'namespaces'], verbs: ['get'] },
  { group: 'authorization.k8s.io', resources: ['subjectaccessreviews'], verbs: ['create'] },
];

export const RECONCILE: readonly Grant[] = [
  {
    group: INSTANCE_GROUP,
    resources: ['gatewayinstances'],
    verbs: ['get', 'list', 'patch'],
    why: 'Finalizers are metadata: patched with the object. `*/finalizers` is what owner references that block deletion ask for.',
  },
  { group: INSTANCE_GROUP, resources: ['gatewayinstances/status'], verbs: ['patch'] },
  { group: INSTANCE_GROUP, resources: ['gatewayinstances/finalizers'], verbs: ['update'] },
  {
    group: AUTH_GROUP,
    resources: ['virtualkeys'],
    verbs: ['get', 'list', 'create', 'patch', 'delete'],
    why: "A User's own key is made, follows its User, and goes.",
  },
  { group: AUTH_GROUP, resources: ['users', 'teams'], verbs: ['get', 'list', 'patch'] },
  { group: AUTH_GROUP, resources: ['virtualkeys/status', 'users/status', 'teams/status'], verbs: ['patch'] },
  { group: AUTH_GROUP, resources: ['virtualkeys/finalizers', 'users/finalizers'], verbs: ['update'] },
  {
    group: CORE,
    resources: ['secrets'],
    verbs: ['get', 'create', 'patch', 'delete'],
    why: 'By name only: those that instances name, and those of keys.',
  },
  {
    group: CORE,
    resources: ['configmaps'],
    verbs: ['get', 'list', 'create', 'delete'],
    why: 'Snapshots: immutable, so never patched.',
  },
  { group: CORE, resources: ['events'], verbs: ['create'] },
  { group: CORE, resources: ['namespaces'], verbs: ['get'] },
  {
    group: 'apps',
    resources: ['deployments'],
    verbs: ['get', 'create', 'patch', 'delete'],
    why: 'What runs gateways, by name. Server-side apply is a patch that may create.',
  },
  { group: CORE, resources: ['services'], verbs: ['get', 'create', 'patch', 'delete'] },
  { group: 'policy', resources: ['poddisruptionbudgets'], verbs: ['get', 'create', 'patch', 'delete'] },
  { group: 'autoscaling', resources: ['horizontalpodautoscalers'], verbs: ['get', 'create', 'patch', 'delete'] },
  { group: 'serving.knative.dev', resources: ['services'], verbs: ['get', 'create', 'patch', 'delete'] },
  {
    group: 'admissionregistration.k8s.io',
    resources: ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
    names: ['gateway-operator'],
    verbs: ['get', 'patch'],
    why: "It puts the CA of admission's certificate there, and touches no other configuration. (The Secret: see above.)",
  },
];

const READ: readonly Verb[] = ['get', 'list', 'watch'];
const EDIT: readonly Verb[] = [...READ, 'create', 'update', 'patch', 'delete', 'deletecollection'];
const KEYS = { group: AUTH_GROUP, resources: ['virtualkeys', 'users', 'teams'] } as const;
const INSTANCES = { group: INSTANCE_GROUP, resources: ['gatewayinstances'] } as const;

/** Roles for people. `aggregateTo`: built-in roles that take this one in. */
export const PEOPLE: ReadonlyArray<{
  readonly name: string;
  readonly aggregateTo: readonly string[];
  readonly grant: Grant;
  readonly comment?: string;
}> = [
  {
    name: 'gateway-instance-admin',
    aggregateTo: ['admin'],
    grant: { ...INSTANCES, verbs: EDIT },
    comment: 'Whoever administers a namespace may run gateways in it (the built-in roles take these in).',
  },
  { name: 'gateway-instance-viewer', aggregateTo: ['edit', 'view'], grant: { ...INSTANCES, verbs: READ } },
  {
    name: 'gateway-key-editor',
    aggregateTo: [],
    grant: { ...KEYS, verbs: EDIT },
    comment: 'Making a key is spending, reading one is holding it: so no built-in role has these; bind them by hand.',
  },
  { name: 'gateway-key-viewer', aggregateTo: [], grant: { ...KEYS, verbs: READ } },
];

interface Commented {
  readonly comment?: string | undefined;
  readonly object: Readonly<Record<string, unknown>>;
  /** Over each of the object's rules. */
  readonly whys?: ReadonlyArray<string | undefined>;
}

/** The documents of access.yaml. */
export function accessManifests(): ReadonlyArray<Commented> {
  return [
    {
      comment:
        'The namespace, and who may do what: one service account per function, with what it really calls and nothing more; roles for people.\nThe gateway has no account: it reads mounted files and speaks to no API server.',
      object: {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: NAMESPACE, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
      },
    },
    ...['admission', 'reconcile'].map(toAccount),
    toRole({
      name: 'gateway-operator-admission',
      grants: ADMISSION,
      comment:
        'Admission reads what a spec refers to, and asks whether its author may read it too. Secrets by name only, never lists.',
    }),
    toBinding('gateway-operator-admission', 'admission'),
    toRole({ name: 'gateway-operator-reconcile', grants: RECONCILE }),
    toBinding('gateway-operator-reconcile', 'reconcile'),
    ...PEOPLE.map(({ name, aggregateTo, grant, comment }) => {
      const labels = Object.fromEntries(
        aggregateTo.map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true']),
      );
      return toRole({ name, grants: [grant], comment, labels });
    }),
  ];
}

/** As YAML, with its comments. */
export function toAccess(): string {
  const texts = accessManifests().map(({ comment, object, whys = [] }) => {
    const document = new Document(object, { version: '1.1', aliasDuplicateObjects: false });
    for (const [index, why] of whys.entries()) {
      const rule = document.getIn(['rules', index], true) as YAMLMap;
      if (why !== undefined) rule.commentBefore = ` ${why}`;
      for (const { value } of rule.items) (value as YAMLSeq).flow = true;
    }
    const text = document.toString({ lineWidth: 0, flowCollectionPadding: false });
    return `${comment === undefined ? '' : comment.replace(/^/gm, '# ').concat('\n')}${text}`;
  });
  return `# Generated by \`npm run generate\` from infra/manifests/rbac.ts; edit that.\n${texts.join('---\n')}`;
}

const toAccount = (name: string): Commented => ({
  object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: NAMESPACE } },
});

const RBAC = 'rbac.authorization.k8s.io';

interface RoleOptions {
  readonly name: string;
  readonly grants: readonly Grant[];
  readonly comment?: string | undefined;
  readonly labels?: Readonly<Record<string, string>>;
}

function toRole({ name, grants, comment, labels = {} }: RoleOptions): Commented {
  const metadata = { name, ...(Object.keys(labels).length === 0 ? {} : { labels }) };
  const object = { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata, rules: grants.map(toRule) };
  return { comment, object, whys: grants.map(({ why }) => why) };
}

/** A rule as the API server has it. */
export const toRule = ({ group, resources, names, verbs }: Grant) => ({
  apiGroups: [group],
  resources: [...resources],
  ...(names === undefined ? {} : { resourceNames: [...names] }),
  verbs: [...verbs],
});

function toBinding(name: string, account: string): Commented {
  return {
    object: {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace: NAMESPACE }],
    },
  };
}
