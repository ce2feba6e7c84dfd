// Discovery: groups, versions and kinds.
import { apiVersionOf, type Resource, type Subresource } from '../resource.ts';
import type { JsonObject } from '../schema/json.ts';

export const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** `/api` or `/apis` in one document, as kubectl asks for it since 1.27. */
export function aggregatedDiscovery(resources: readonly Resource[], core: boolean): JsonObject {
  const groups = byGroup(resources).filter(([group]) => (group === '') === core);
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map(([group, versions]) => ({
      metadata: { ...(group && { name: group }), creationTimestamp: null },
      versions: versions.map(([version, entries]) => ({
        version,
        freshness: 'Current',
        resources: entries.map(aggregatedEntry),
      })),
    })),
  };
}

/** `/apis` for older clients. */
export function groupList(resources: readonly Resource[]): JsonObject {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groupsOf(resources) };
}

/** `/apis/GROUP`. */
export function groupOf(resources: readonly Resource[], wanted: string): JsonObject | undefined {
  const found = groupsOf(resources).find(({ name }) => name === wanted);
  return found && { kind: 'APIGroup', apiVersion: 'v1', ...found };
}

function groupsOf(resources: readonly Resource[]): JsonObject[] {
  const groups = byGroup(resources).filter(([group]) => group !== '');
  return groups.map(([name, versions]) => {
    const all = versions.map(([version]) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions: all, preferredVersion: all[0] };
  });
}

/** `/api/v1` or `/apis/GROUP/VERSION`. */
export function resourceList(resources: readonly Resource[], group: string, version: string): JsonObject | undefined {
  const entries = resources.filter((one) => one.group === group && one.version === version);
  if (entries.length === 0) return undefined;
  const groupVersion = apiVersionOf({ group, version });
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: entries.flatMap(legacyEntries) };
}

type Versions = ReadonlyArray<readonly [version: string, entries: readonly Resource[]]>;

function byGroup(resources: readonly Resource[]): ReadonlyArray<readonly [group: string, versions: Versions]> {
  const groups = Map.groupBy(resources, ({ group }) => group);
  return [...groups].map(([group, entries]) => {
    const versions = [...Map.groupBy(entries, ({ version }) => version)];
    return [group, versions.sort(([left], [right]) => priority(right) - priority(left))] as const;
  });
}

/** v1 before v1beta1 before v1alpha1; higher numbers first. */
function priority(version: string): number {
  const [, major = '0', stage, minor = '0'] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? [];
  return (stage === undefined ? 2 : stage === 'beta' ? 1 : 0) * 1e6 + Number(major) * 1e3 + Number(minor);
}

function aggregatedEntry(entry: Resource): JsonObject {
  const { group, version, plural, singular, kind, namespaced, verbs, shortNames, categories, subresources } = entry;
  const responseKind = { group, version, kind };
  return {
    resource: plural,
    responseKind,
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && {
      subresources: subresources.map((subresource) => ({
        subresource,
        responseKind,
        verbs: subresourceVerbs(subresource),
      })),
    }),
  };
}

function legacyEntries(entry: Resource): JsonObject[] {
  const { plural, singular, kind, namespaced, verbs, shortNames, categories, subresources } = entry;
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames.length > 0 && { shortNames }),
      ...(categories.length > 0 && { categories }),
    },
    ...subresources.map((subresource) => ({
      name: `${plural}/${subresource}`,
      singularName: '',
      namespaced,
      kind,
      verbs: subresourceVerbs(subresource),
    })),
  ];
}

function subresourceVerbs(subresource: Subresource): string[] {
  return subresource === 'finalize' ? ['update'] : ['get', 'patch', 'update'];
}
