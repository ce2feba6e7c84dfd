// How do manifests get into a cluster: read, filled in, and applied through its API?
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Cluster, KubeObject, Resource } from '#core/ports/cluster.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds.ts';

const ROOT = join(import.meta.dirname, '../../..');

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;

const OTHERS: Readonly<Record<string, Resource>> = {
  ServiceAccount: { group: '', version: 'v1', plural: 'serviceaccounts', kind: 'ServiceAccount' },
  ClusterRole: { ...RBAC, plural: 'clusterroles', kind: 'ClusterRole' },
  ClusterRoleBinding: { ...RBAC, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' },
  Role: { ...RBAC, plural: 'roles', kind: 'Role' },
  RoleBinding: { ...RBAC, plural: 'rolebindings', kind: 'RoleBinding' },
  CustomResourceDefinition: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
  },
  MutatingWebhookConfiguration: {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    plural: 'mutatingwebhookconfigurations',
    kind: 'MutatingWebhookConfiguration',
  },
  ValidatingWebhookConfiguration: {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    plural: 'validatingwebhookconfigurations',
    kind: 'ValidatingWebhookConfiguration',
  },
};

/** The resource that holds objects of this kind; throws for a kind the stack never applies. */
export function resourceOf(kind: string): Resource {
  const core = Object.values(RESOURCES).find((resource) => resource.kind === kind);
  const found = kinds.find((known) => known.kind === kind) ?? OTHERS[kind] ?? core;
  if (found === undefined) throw new Error(`no resource for kind ${kind}`);
  return found;
}

/** Our CRDs, as generated and committed. */
export function customResourceDefinitions(): ReadonlyArray<KubeObject> {
  const folder = join(ROOT, 'crds/manifests');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => readDocuments(readFileSync(join(folder, name), 'utf8')))
    .filter(({ kind }) => kind === 'CustomResourceDefinition');
}

/** What the sample is made for. */
export interface Addresses {
  readonly database: DatabaseConnection;
  readonly upstream: string;
  readonly upstreamKey: string;
}

/** The sample with this machine's addresses; every `${base64:name}` must be given. */
export function renderSample({ database, upstream, upstreamKey }: Addresses): string {
  const values: Readonly<Record<string, string>> = {
    databaseHost: `${database.host}:${database.port}`,
    databaseUsername: database.username,
    databasePassword: database.password,
    databaseName: database.dbname,
    storeHost: 'memory',
    storePort: '6379',
    upstreamKey,
    upstreamBase: `${upstream}/v1`,
  };
  const text = readFileSync(join(import.meta.dirname, '../sample/sample.yaml'), 'utf8');
  return text.replace(/\$\{base64:(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the sample asks for ${name}`);
    return Buffer.from(value).toString('base64');
  });
}

/** The documents of a YAML text; comments alone are none. */
export function readDocuments(text: string): ReadonlyArray<KubeObject> {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

/** Creates the object, or brings what is there to it (`update: false`: leaves it as people have made it). Throws with the cluster's own words. */
export async function put(
  cluster: Cluster,
  object: KubeObject,
  update: boolean,
): Promise<'created' | 'updated' | 'kept'> {
  const resource = resourceOf(object.kind);
  const { namespace, name } = object.metadata;
  const live = await cluster.get(resource, namespace, name);
  if (live !== undefined && !update) return 'kept';
  const written =
    live === undefined
      ? await cluster.create(resource, object)
      : await cluster.patch(resource, namespace, name, object as Readonly<Record<string, unknown>>);
  if (written.ok) return live === undefined ? 'created' : 'updated';
  if (written.refusal === 'exists') return put(cluster, object, update);
  throw new Error(`${object.kind} ${name} was refused: ${written.message}`);
}

/** Applies the CRDs and waits until the API server serves them. */
export async function applyKinds(cluster: Cluster): Promise<void> {
  for (const definition of customResourceDefinitions()) await put(cluster, definition, true);
  for (const kind of kinds) {
    for (const until = Date.now() + 20_000; ; await pause(50)) {
      const served = await cluster.list(kind, { limit: 1 }).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (served === undefined) break;
      if (Date.now() > until) throw new Error(`the cluster does not serve ${kind.plural}`, { cause: served });
    }
  }
}
