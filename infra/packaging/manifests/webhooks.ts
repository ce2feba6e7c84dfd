// Webhook configurations: as install.yaml has them for the cluster's own admission, or with another address, policy or
// user.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '#core/ports/cluster.ts';
import { readDocuments } from './apply.ts';

/** The namespace of the operator. */
export const NAMESPACE = 'gateway-operator';

/** The user name of a function's service account in the API server. */
export const accountUser = (account: 'admission' | 'reconcile'): string =>
  `system:serviceaccount:${NAMESPACE}:${account}`;

export interface WebhookOptions {
  /** The address before /mutate and /validate: public, or the local stack's. Absent: the Service of the cluster. */
  readonly base?: string;
  /** PEM. Absent: the system's roots, or injected later. */
  readonly caBundle?: string;
  /**
   * `Fail` (default): every object is validated. `Ignore`: while the webhook is down, objects are not validated; the
   * reconciler validates them later.
   */
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** The user whose writes are not reviewed: that of the reconciler. Absent: none. */
  readonly ownUser?: string;
}

/** The configurations of the file, into which the reconciler writes the path and the CA. */
export const IN_CLUSTER = { ownUser: accountUser('reconcile') } as const satisfies WebhookOptions;

interface Webhook {
  readonly name: string;
  readonly clientConfig: object;
  readonly matchConditions: ReadonlyArray<{ readonly name: string; readonly expression: string }>;
  readonly failurePolicy: string;
}

const FILE = join(import.meta.dirname, '../../platforms/kubernetes/install.yaml');

/** As the file has them. It is read once. */
let configurations: ReadonlyArray<KubeObject> | undefined;

export function webhookConfigurations(options: WebhookOptions): ReadonlyArray<KubeObject> {
  configurations ??= readDocuments(readFileSync(FILE, 'utf8')).filter(({ kind }) =>
    kind.endsWith('WebhookConfiguration'),
  );
  return configurations.map((configuration) => ({
    ...configuration,
    webhooks: (configuration.webhooks as ReadonlyArray<Webhook>).map((webhook) => ({
      ...webhook,
      clientConfig: clientConfigOf(webhook, options),
      matchConditions: conditionsOf(webhook, options),
      // The webhook for deletions never blocks, whatever policy was chosen.
      failurePolicy: webhook.failurePolicy === 'Fail' ? (options.failurePolicy ?? 'Fail') : 'Ignore',
    })),
  }));
}

function clientConfigOf({ name, clientConfig }: Webhook, { base, caBundle }: WebhookOptions) {
  const path = name.startsWith('mutate.') ? 'mutate' : 'validate';
  const address = base === undefined ? clientConfig : { url: `${base}/${path}` };
  return caBundle === undefined ? address : { ...address, caBundle: Buffer.from(caBundle).toString('base64') };
}

function conditionsOf({ matchConditions }: Webhook, { ownUser }: WebhookOptions) {
  return matchConditions.flatMap((condition) => {
    if (condition.name !== 'not-our-own') return [condition];
    return ownUser === undefined ? [] : [{ ...condition, expression: `request.userInfo.username != '${ownUser}'` }];
  });
}

const HELP = `usage: npx node infra/packaging/manifests/webhooks.ts (--url https://HOST/SEGMENT | --in-cluster) [--failure-policy Fail|Ignore]

Prints the webhook configurations, for kubectl apply -f -.

  --url ADDRESS            they call the admission webhook at this address, on Workers or Knative; SEGMENT is a value of PATH_SECRETS
  --in-cluster             they call the Service admission of the namespace gateway-operator
  --failure-policy POLICY  Fail (default): no object is stored while the webhook is away; Ignore: objects are stored, and the reconciler checks them
`;

/** The options of a command line; a text is its usage. */
export function toWebhookOptions(args: ReadonlyArray<string>): WebhookOptions | string {
  const [where, ...rest] = args;
  const address = where === '--url' ? rest.shift() : undefined;
  if (address === undefined && where !== '--in-cluster') return HELP;
  const problem = address === undefined ? undefined : problemOf(address);
  if (problem !== undefined) return `--url ${address}: ${problem}\n${HELP}`;
  const [option, failurePolicy = 'Fail', ...more] = rest;
  const isPolicy = option === undefined || option === '--failure-policy';
  if (!isPolicy || more.length > 0 || (failurePolicy !== 'Fail' && failurePolicy !== 'Ignore')) return HELP;
  return { ...IN_CLUSTER, ...(address === undefined ? {} : { base: address.replace(/\/+$/, '') }), failurePolicy };
}

/** The reason why the API server could not call the webhook at the address. */
function problemOf(address: string): string | undefined {
  if (!URL.canParse(address)) return 'must be an address, https://HOST/SEGMENT';
  const { protocol, pathname, search, hash, username } = new URL(address);
  if (protocol !== 'https:')
    return 'must begin with https://, because the API server calls webhooks over https only; on Knative switch auto-tls on';
  if (search !== '' || hash !== '' || username !== '')
    return 'must end after the segment, without ? or #, and have no user';
  const [segment = '', ...more] = pathname.replace(/^\/|\/+$/g, '').split('/');
  if (segment === '' || more.length > 0)
    return 'must end with one path segment, a value of PATH_SECRETS (or of the entry admission-path)';
  return segment === 'SEGMENT' ? 'must have a value of PATH_SECRETS in place of SEGMENT' : undefined;
}

// `npx node infra/packaging/manifests/webhooks.ts --url https://HOST/SEGMENT | kubectl apply -f -`
if (import.meta.main) {
  const options = toWebhookOptions(process.argv.slice(2));
  if (typeof options === 'string') {
    process.stderr.write(options);
    process.exitCode = 2;
  } else {
    const list = { apiVersion: 'v1', kind: 'List', items: webhookConfigurations(options) };
    process.stdout.write(`${JSON.stringify(list, null, 2)}\n`);
  }
}
