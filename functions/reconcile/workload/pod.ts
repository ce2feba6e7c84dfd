// The Pod of a gateway: its snapshot, credentials, database, counter store and journal as files, and no access to the
// API server.

import type { StoreConnection } from '#core/ports/backends.ts';
import { DATABASE_FILES, type StoreFile } from '#core/rules/connections.ts';
import { isOwnVariable, type OwnVariable } from '#core/rules/reserved-variables.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import { CONNECTIONS_ANNOTATION, SNAPSHOT_ANNOTATION } from '#crds/names/group.ts';

export interface PodInput {
  readonly instance: GatewayInstance;
  readonly snapshot: { readonly hash: string; readonly name: string };
  readonly store: StoreConnection['type'];
  /** The Secret keys that the counter store needs: an item that is not in the Secret would keep the Pod from starting. */
  readonly storeFiles: ReadonlyArray<StoreFile>;
  /** Hash of what a Pod reads only when it starts: the addresses of database and counter store, and authorities. */
  readonly connections: string;
  /** Hash of all that a Pod reads of both Secrets. */
  readonly logins: string;
  /** The image of instances that name none. */
  readonly image: string;
  /** Names of the image pull Secrets. */
  readonly pullSecrets: ReadonlyArray<string>;
  /** The version of the operator that writes the Pod. */
  readonly version: string;
}

/**
 * Variables of `infra/runtime/config/environments.ts`. All are set, so that the variables of a spec cannot change a
 * mount or the port of a probe.
 */
const MOUNTS = {
  snapshot: { variable: 'SNAPSHOT_FILE', path: '/etc/gateway/snapshot', file: 'snapshot.json' },
  credentials: { variable: 'CREDENTIALS_DIR', path: '/etc/gateway/credentials', file: '' },
  database: { variable: 'DATABASE_DIR', path: '/etc/gateway/database', file: '' },
  store: { variable: 'STORE_DIR', path: '/etc/gateway/store', file: '' },
  journal: { variable: 'JOURNAL_DIR', path: '/var/lib/gateway/journal', file: '' },
} as const satisfies Record<string, { readonly variable: OwnVariable; readonly path: string; readonly file: string }>;
/** The file with the authorities that Node trusts beside its own, if the instance names a ConfigMap. */
const AUTHORITIES = { variable: 'NODE_EXTRA_CA_CERTS', path: '/etc/gateway/ca', file: 'ca.crt' };

export const PORT = 8080;
/** The port of metrics. No Service has it, so clients do not reach it. */
export const METRICS_PORT = 9464;
/**
 * The memory limit decides the largest body, and how many bodies and streams the gateway accepts: a body of 32 MiB
 * needs 1 GiB (docs/operate/gateways.md).
 */
const RESOURCES = { requests: { cpu: '100m', memory: '192Mi' }, limits: { memory: '1Gi' } };
/** The requirements of the restricted Pod security profile for a container. */
const SECURITY = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

/** Parts of the Pod that differ between Deployment and Knative Service. Pods are selected by `labels`. */
interface PodVariant {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly pod: object;
  readonly container: object;
}

/**
 * The gateway never calls an API server, so no Pod gets a token. A named service account serves webhooks and cloud
 * identities.
 */
export function podTemplate(input: PodInput, { labels, annotations, pod, container }: PodVariant) {
  const { instance, snapshot, connections, pullSecrets } = input;
  const {
    podLabels,
    podAnnotations,
    serviceAccountName,
    env = [],
    image,
    resources = RESOURCES,
    caConfigMapRef,
  } = instance.spec.workload;
  const files = [...Object.values(MOUNTS), ...(caConfigMapRef === undefined ? [] : [AUTHORITIES])].map(
    ({ variable, path, file }) => ({ name: variable as string, value: `${path}/${file}`.replace(/\/$/, '') }),
  );
  const mounted = volumes(input);
  const own = { [SNAPSHOT_ANNOTATION]: snapshot.hash, [CONNECTIONS_ANNOTATION]: connections };
  const gateway = {
    name: 'gateway',
    image: image ?? input.image,
    command: ['node', 'dist/node/gateway.mjs'],
    env: [...files, ...env.filter(({ name }) => !files.some((one) => one.name === name) && !isOwnVariable(name))],
    resources,
    securityContext: SECURITY,
    volumeMounts: mounted.map(({ name }) => ({
      name,
      mountPath: name === 'ca' ? AUTHORITIES.path : MOUNTS[name].path,
      ...(name === 'journal' ? {} : { readOnly: true }),
    })),
  };
  return {
    metadata: { labels: { ...podLabels, ...labels }, annotations: { ...podAnnotations, ...own, ...annotations } },
    spec: {
      ...pod,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(serviceAccountName === undefined ? {} : { serviceAccountName }),
      ...(pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((name) => ({ name })) }),
      containers: [{ ...gateway, ...container }],
      volumes: mounted,
    },
  };
}

interface Volume {
  readonly name: keyof typeof MOUNTS | 'ca';
  readonly [source: string]: unknown;
}

function volumes({ instance, snapshot, storeFiles }: PodInput): Volume[] {
  const { redisSecretRef, workload } = instance.spec;
  const { caConfigMapRef: ca } = workload;
  const sources = credentialSources(instance);
  return [
    { name: 'snapshot', configMap: { name: snapshot.name } },
    ...(sources.length === 0 ? [] : [{ name: 'credentials', projected: { sources } } as const]),
    {
      name: 'database',
      secret: {
        secretName: instance.spec.databaseSecretRef.nameRef,
        items: itemsOf(instance.spec.databaseSecretRef.keys, DATABASE_FILES),
      },
    },
    { name: 'store', secret: { secretName: redisSecretRef.nameRef, items: itemsOf(redisSecretRef.keys, storeFiles) } },
    { name: 'journal', emptyDir: {} },
    ...(ca === undefined
      ? []
      : [{ name: 'ca', configMap: { name: ca.name, items: [{ key: ca.key, path: AUTHORITIES.file }] } } as const]),
  ];
}

/**
 * One file for each Secret key, one folder for each Secret. A missing Secret key disables one model entry, never the
 * gateway.
 */
function credentialSources({ spec }: GatewayInstance): object[] {
  const entries = spec.models.flatMap(({ requiresAuth, modelCredentials }) =>
    requiresAuth && modelCredentials !== undefined
      ? Object.values(modelCredentials.keys).map((key) => ({ secret: modelCredentials.nameRef, key }))
      : [],
  );
  const bySecret = [...Map.groupBy(entries, ({ secret }) => secret)].sort(([a], [b]) => (a < b ? -1 : 1));
  return bySecret.map(([name, all]) => {
    const keys = [...new Set(all.map(({ key }) => key))].sort();
    return { secret: { name, optional: true, items: keys.map((key) => ({ key, path: `${name}/${key}` })) } };
  });
}

/** Secret keys under the file names that the gateway reads. */
function itemsOf<Path extends string>(
  keys: Readonly<Partial<Record<`${Path}Secret`, string | undefined>>>,
  files: ReadonlyArray<Path>,
): object[] {
  return files.flatMap((path) => {
    const key = keys[`${path}Secret`];
    return key === undefined ? [] : [{ key, path }];
  });
}
