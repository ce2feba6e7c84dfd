// Discovery: groups, versions and kinds.
import { apiVersionOf, type Resource } from '../resource.ts';
import type { JsonObject } from '../schema/json.ts';

/** `/apis`. */
export function groupList(resources: readonly Resource[]): JsonObject {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groupsOf(resources) };
}

/** `/apis/GROUP`. */
export function groupOf(resources: readonly Resource[], wanted: string): JsonObject | undefined {
  const found = groupsOf(resources).find(({ name }) => name === wanted);
  return found && { kind: 'APIGroup', apiVersion: 'v1', ...found };
}

function groupsOf(resources: readonly Resource[]): JsonObject[] {
  const groups = Map.groupBy(resources, ({ group }) => group);
  groups.delete(''); // the core group is not listed
  return [...groups].map(([name, entries]) => {
    const versions = [...new Set(entries.map(({ version }) => version))];
    versions.sort((left, right) => priority(right) - priority(left));
    const all = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions: all, preferredVersion: all[0] };
  });
}

/** `/api/v1` or `/apis/GROUP/VERSION`. */
export function resourceList(resources: readonly Resource[], group: string, version: string): JsonObject | undefined {
  const entries = resources.filter((one) => one.group === group && one.version === version);
  if (entries.length === 0) return undefined;
  const groupVersion = apiVersionOf({ group, version });
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: entries.flatMap(entriesOf) };
}

/** v1 before v1beta1 before v1alpha1; higher numbers first. */
function priority(version: string): number {
  const [, major = '0', stage, minor = '0'] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? [];
  return (stage === undefined ? 2 : stage === 'beta' ? 1 : 0) * 1e6 + Number(major) * 1e3 + Number(minor);
}

function entriesOf(entry: Resource): JsonObject[] {
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
      verbs: subresource === 'finalize' ? ['update'] : ['get', 'patch', 'update'],
    })),
  ];
}
