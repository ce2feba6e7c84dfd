// Manifests applied to a cluster through its API: our CRDs, roles, webhooks, and what tests and the sample need.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import type { Cluster, KubeObject, Resource } from '#core/ports/cluster.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds/kinds.ts';

const CRDS = join(import.meta.dirname, '../../../crds/manifests');
const ACCESS = join(import.meta.dirname, '../../platforms/kubernetes/access.yaml');

/** Kinds that only manifests contain: all in `v1`, with a regular plural. */
const OTHERS: ReadonlyArray<Resource> = [
  ['', 'ServiceAccount'],
  ['rbac.authorization.k8s.io', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  ['apiextensions.k8s.io', 'CustomResourceDefinition'],
  ['admissionregistration.k8s.io', 'MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'],
].flatMap(([group = '', ...named]) =>
  named.map((kind) => ({ group, version: 'v1', plural: `${kind.toLowerCase()}s`, kind })),
);

/** The resource of this kind; throws for a kind that is never applied. */
export function resourceOf(kind: string): Resource {
  const found = [...kinds, ...OTHERS, ...Object.values(RESOURCES)].find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no resource for kind ${kind}`);
  return found;
}

/** Our CRDs, as generated and committed. */
export function customResourceDefinitions(): ReadonlyArray<KubeObject> {
  return readdirSync(CRDS)
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => readDocuments(readFileSync(join(CRDS, name), 'utf8')))
    .filter(({ kind }) => kind === 'CustomResourceDefinition');
}

/** The namespace, accounts and roles of the operator. */
export const accessManifests = (): ReadonlyArray<KubeObject> => readDocuments(readFileSync(ACCESS, 'utf8'));

/** The documents of a YAML text, without those that have only comments. */
export function readDocuments(text: string): ReadonlyArray<KubeObject> {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

/**
 * Creates the object, or patches an existing one (`update: false`: leaves it unchanged). Throws with the message of the
 * API server.
 */
export async function put(cluster: Cluster, object: KubeObject, update: boolean): Promise<void> {
  const resource = resourceOf(object.kind);
  const { namespace, name } = object.metadata;
  const live = await cluster.get(resource, namespace, name);
  if (live !== undefined && !update) return;
  const written =
    live === undefined
      ? await cluster.create(resource, object)
      : await cluster.patch(resource, namespace, name, object as Readonly<Record<string, unknown>>);
  if (written.ok) return;
  if (written.refusal === 'exists') return put(cluster, object, update);
  throw new Error(`${object.kind} ${name} was refused: ${written.message}`);
}

/** Applies the CRDs and waits until the API server serves them. */
export async function applyKinds(cluster: Cluster): Promise<void> {
  for (const definition of customResourceDefinitions()) await put(cluster, definition, true);
  for (const kind of kinds) {
    for (const until = Date.now() + 20_000; ; await pause(50)) {
      const failure: unknown = await cluster.list(kind, { limit: 1 }).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failure === undefined) break;
      if (Date.now() > until) throw new Error(`the cluster does not serve ${kind.plural}`, { cause: failure });
    }
  }
}
