// Which reviews does the API server send us? Of our kinds only, on create and update; deletions for the hint (DESIGN 5).
import type { KubeObject } from '#core/ports/cluster.ts';
import { AUTH_GROUP, INSTANCE_GROUP, VERSION } from '#crds/group.ts';

/** The operator's own. */
export const NAMESPACE = 'gateway-operator';

/** What the API server calls the service account of a function. */
export const accountUser = (account: 'admission' | 'reconcile'): string =>
  `system:serviceaccount:${NAMESPACE}:${account}`;

/** Where the API server finds the function: a URL (public, or the local stack), or a Service of the cluster. `path` stands before /mutate and /validate. */
export type WebhookTarget =
  | { readonly type: 'url'; readonly base: string }
  | {
      readonly type: 'service';
      readonly namespace: string;
      readonly name: string;
      readonly path: string;
      readonly port: number;
    };

export interface WebhookOptions {
  readonly target: WebhookTarget;
  /** PEM. Absent: the system's roots, or injected later. */
  readonly caBundle?: string;
  /** `Fail` (default): nothing unjudged gets in. `Ignore`: a dead function never blocks; reconcile judges again. */
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** Our own reconcile identity, e.g. `system:serviceaccount:gateway-operator:reconcile`: never judged. */
  readonly ownUser?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Stands for the unguessable segment until somebody who installs puts it in (docs/kubernetes.md). */
export const PATH_PLACEHOLDER = '<ADMISSION_PATH>';

/** In the cluster itself, as infra/kubernetes/operator.yaml has it: reconcile puts the CA in, or cert-manager where it is asked to. */
export const IN_CLUSTER: WebhookOptions = {
  target: { type: 'service', namespace: NAMESPACE, name: 'admission', path: `/${PATH_PLACEHOLDER}`, port: 443 },
  ownUser: accountUser('reconcile'),
};

/** The two configurations, as plain objects. */
export function webhookConfigurations(options: WebhookOptions): ReadonlyArray<KubeObject> {
  return [
    { kind: 'MutatingWebhookConfiguration', verb: 'mutate', extra: { reinvocationPolicy: 'IfNeeded' } },
    { kind: 'ValidatingWebhookConfiguration', verb: 'validate', extra: {} },
  ].map(({ kind, verb, extra }) => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: {
      name: 'gateway-operator',
      labels: { 'app.kubernetes.io/part-of': 'gateway-operator' },
      ...(options.annotations === undefined ? {} : { annotations: options.annotations }),
    },
    webhooks: [
      { name: `${verb}.gateway-operator.dev`, ...webhook(options, verb), ...extra },
      ...(verb === 'validate' ? [deletions(options)] : []),
    ],
  }));
}

/** Only for the hint that follows: a deletion is never judged, and a dead function holds up none. */
function deletions(options: WebhookOptions) {
  const { rules, matchConditions, ...entry } = webhook(options, 'validate');
  return {
    name: 'deleted.gateway-operator.dev',
    ...entry,
    rules: rules.map((one) => ({ ...one, operations: ['DELETE'] })),
    matchConditions: matchConditions.filter(({ name }) => name !== 'not-being-deleted'),
    failurePolicy: 'Ignore',
    timeoutSeconds: 1,
  };
}

function webhook(options: WebhookOptions, verb: string) {
  return {
    clientConfig: { ...clientConfig(options.target, verb), ...bundle(options.caBundle) },
    rules: [rule(INSTANCE_GROUP, ['gatewayinstances']), rule(AUTH_GROUP, ['virtualkeys', 'users', 'teams'])],
    matchConditions: matchConditions(options.ownUser),
    // Only our own kinds are matched, so a dead function can block nothing but them: Fail is safe, and nothing unjudged gets in.
    failurePolicy: options.failurePolicy ?? 'Fail',
    matchPolicy: 'Equivalent',
    sideEffects: 'NoneOnDryRun',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: 5,
  };
}

const rule = (group: string, resources: ReadonlyArray<string>) => ({
  apiGroups: [group],
  apiVersions: [VERSION],
  operations: ['CREATE', 'UPDATE'],
  resources,
  scope: 'Namespaced',
});

function clientConfig(target: WebhookTarget, verb: string) {
  if (target.type === 'url') return { url: `${target.base}/${verb}` };
  const { namespace, name, path, port } = target;
  return { service: { namespace, name, path: `${path}/${verb}`, port } };
}

const bundle = (caBundle: string | undefined) =>
  caBundle === undefined ? {} : { caBundle: Buffer.from(caBundle).toString('base64') };

function matchConditions(ownUser: string | undefined) {
  // A function that is down must never hold a finalizer: what is being deleted is not judged.
  const living = { name: 'not-being-deleted', expression: '!has(object.metadata.deletionTimestamp)' };
  if (ownUser === undefined) return [living];
  return [living, { name: 'not-our-own', expression: `request.userInfo.username != '${ownUser}'` }];
}

const USAGE =
  'usage: npx node infra/manifests/webhooks.ts (--url https://HOST/SEGMENT | --in-cluster) [--failure-policy Fail|Ignore]';

/** What the command line asks for; a text says how to ask. */
export function toWebhookOptions(args: ReadonlyArray<string>): WebhookOptions | string {
  const [where, ...rest] = args;
  const address = where === '--url' ? rest.shift() : undefined;
  const isAddress = address !== undefined && URL.canParse(address) && address.startsWith('https://');
  if (!isAddress && where !== '--in-cluster') return USAGE;
  const target = isAddress ? ({ type: 'url', base: address.replace(/\/+$/, '') } as const) : IN_CLUSTER.target;
  const [option, failurePolicy = 'Fail', ...more] = rest;
  const isPolicy = option === undefined || option === '--failure-policy';
  if (!isPolicy || more.length > 0 || (failurePolicy !== 'Fail' && failurePolicy !== 'Ignore')) return USAGE;
  return { ...IN_CLUSTER, target, failurePolicy };
}

// `npx node infra/manifests/webhooks.ts --url https://HOST/SEGMENT | kubectl apply -f -`
if (import.meta.main) {
  const options = toWebhookOptions(process.argv.slice(2));
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`);
    process.exitCode = 2;
  } else {
    const list = { apiVersion: 'v1', kind: 'List', items: webhookConfigurations(options) };
    process.stdout.write(`${JSON.stringify(list, null, 2)}\n`);
  }
}
