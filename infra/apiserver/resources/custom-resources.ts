// Custom resources: the kinds that a CustomResourceDefinition makes.
import { jsonPath as compileJsonPath } from '../codec/json-path.ts';
import { crdColumns } from '../codec/table.ts';
import { type CrdSpec, type CrdVersion, crdSpec } from '../kinds/custom-resource-definition.ts';
import type { KubeObject } from '../object.ts';
import type { Resource, Strategy, Subresource } from '../resource.ts';
import { createStructural, type Structural } from '../schema/structural.ts';

const verbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];

/** One resource per served version; objects of all of them are stored as one. */
export function customResources(crd: KubeObject): Resource[] {
  const spec = crdSpec(crd);
  return spec.versions.filter(({ served }) => served).map((version) => toResource(spec, version));
}

function toResource({ group, scope, names }: CrdSpec, version: CrdVersion): Resource {
  const schema = version.schema?.openAPIV3Schema ?? {};
  const hasStatus = version.subresources?.status !== undefined;
  const subresources: Subresource[] = hasStatus ? ['status'] : [];
  let structural: Structural | undefined;
  const compiled = () => {
    structural ??= createStructural(schema);
    return structural;
  };
  return {
    group,
    version: version.name,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    namespaced: scope === 'Namespaced',
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    verbs,
    subresources,
    storedAs: `${group}/${names.plural}`,
    custom: true,
    generations: true,
    unconditionalUpdate: false,
    nameRule: 'subdomain',
    columns: crdColumns(version.additionalPrinterColumns),
    strategy: {
      applyDefaults: (object) => compiled().applyDefaults(object) as KubeObject, // defaults keep its kind and metadata
      selectable: selectableOf(version),
    },
    schema,
    structural: compiled,
  };
}

/** Selectable fields are named as in a field selector: `spec.color` for the path `.spec.color`. */
function selectableOf({ selectableFields = [] }: CrdVersion): NonNullable<Strategy['selectable']> {
  const fields = selectableFields.map(({ jsonPath }) => {
    const read = compileJsonPath(jsonPath);
    return [jsonPath.replace(/^\./, ''), (object: KubeObject) => String(read(object)[0] ?? '')] as const;
  });
  return Object.fromEntries(fields);
}
