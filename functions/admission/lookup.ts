// What do the checks ask the cluster? Each thing once a request, by name or by selectable field, and Secrets only for who may read them.
import { admitsNamespace, needsLabels } from '#core/allowed-namespaces.ts';
import { keySecretName } from '#core/names.ts';
import {
  type Cluster,
  type KubeObject,
  RESOURCES,
  type Requester,
  type Resource,
  toFieldSelector,
} from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { GatewayInstanceSpec } from '#crds/gateway-instance.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/resources.ts';
import { isMap } from '#crds/shapes.ts';

/** No list of ours may cost more than one page. */
export const MOST_KEYS = 500;

export interface Lookup {
  /** Undefined: not there, or the user may not read it; nobody can tell the two apart. */
  secret(namespace: string, name: string): Promise<KubeObject | undefined>;
  /** Undefined: not there, or it does not admit `from`; nobody can tell the two apart. */
  instance(namespace: string, name: string, from: string): Promise<KubeObject | undefined>;
  virtualKey(namespace: string, name: string): Promise<KubeObject | undefined>;
  user(namespace: string, name: string): Promise<KubeObject | undefined>;
  team(namespace: string, name: string): Promise<KubeObject | undefined>;
  /** What the operator calls the Secret of a key. */
  keySecretName(key: string, template: string | undefined): string;
  /** At most `limit` objects with these selectable fields, in all namespaces; those being deleted are gone already. */
  select(
    resource: Resource,
    fields: Readonly<Record<string, string>>,
    limit?: number,
  ): Promise<ReadonlyArray<KubeObject>>;
}

export interface LookupDeps {
  readonly cluster: Cluster;
  readonly hash: Hash;
}

/** For one request and one user: what was asked once is not asked again. */
export function createLookup({ cluster, hash }: LookupDeps, requester: Requester): Lookup {
  const answers = new Map<string, Promise<unknown>>();
  function once<T>(question: string, ask: () => Promise<T>): Promise<T> {
    const known = answers.get(question) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const answer = ask();
    answers.set(question, answer);
    return answer;
  }
  const get = (resource: Resource, namespace: string | undefined, name: string) =>
    once(toQuestion(`get ${resource.plural}`, namespace, name), () => cluster.get(resource, namespace, name));

  return {
    secret: (namespace, name) =>
      once(toQuestion('secret', namespace, name), async () => {
        const may = await cluster.may(requester, 'get', RESOURCES.secrets, namespace, name);
        return may ? cluster.get(RESOURCES.secrets, namespace, name) : undefined;
      }),
    instance: (namespace, name, from) =>
      once(toQuestion(`instance for ${from.length} ${from}`, namespace, name), async () => {
        const instance = await cluster.get(gatewayInstances, namespace, name);
        if (instance === undefined) return undefined;
        const allowed = allowedNamespaces(instance);
        const home = needsLabels(allowed) ? await get(RESOURCES.namespaces, undefined, from) : undefined;
        const asking = { name: from, labels: home?.metadata.labels ?? {} };
        return admitsNamespace(allowed, namespace, asking) ? instance : undefined;
      }),
    virtualKey: (namespace, name) => get(virtualKeys, namespace, name),
    user: (namespace, name) => get(users, namespace, name),
    team: (namespace, name) => get(teams, namespace, name),
    keySecretName: (key, template) => keySecretName(key, template, hash),
    select: async (resource, fields, limit = MOST_KEYS) => {
      const fieldSelector = toFieldSelector(fields);
      const found = await once(toQuestion(`list ${limit} ${resource.plural}`, '', fieldSelector), () =>
        cluster.list(resource, { fieldSelector, limit }),
      );
      return found.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    },
  };
}

/** The same text for the same question only: the length tells where a namespace ends, whatever stands in it. */
const toQuestion = (verb: string, namespace: string | undefined, name: string): string =>
  `${verb} ${namespace === undefined ? '' : namespace.length} ${namespace ?? ''} ${name}`;

/** A stored instance was judged by the schema, so what stands there has its shape. */
function allowedNamespaces({ spec }: KubeObject): GatewayInstanceSpec['allowedNamespaces'] | undefined {
  return isMap(spec) ? (spec.allowedNamespaces as GatewayInstanceSpec['allowedNamespaces'] | undefined) : undefined;
}
