// Which kinds does a CustomResourceDefinition make?

import { jsonPath as compileJsonPath } from '../codec/json-path.ts';
import { crdColumns, type PrinterColumn } from '../codec/table.ts';
import type { KubeObject } from '../object.ts';
import type { Resource, Strategy, Subresource } from '../resource.ts';
import type { Schema } from '../schema/schema.ts';
import { createStructural, type Structural } from '../schema/structural.ts';

export type CrdVersion = {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  readonly schema?: { readonly openAPIV3Schema?: Schema };
  readonly subresources?: { readonly status?: object; readonly scale?: object };
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
  readonly selectableFields?: ReadonlyArray<{ readonly jsonPath: string }>;
};

export type CrdSpec = {
  readonly group: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly names: {
    readonly plural: string;
    readonly singular?: string;
    readonly kind: string;
    readonly listKind?: string;
    readonly shortNames?: readonly string[];
    readonly categories?: readonly string[];
  };
  readonly versions: readonly CrdVersion[];
  readonly conversion?: { readonly strategy?: string };
  readonly preserveUnknownFields?: boolean;
};

/** Validated before it was stored, so its shape is known. */
export function crdSpec(crd: KubeObject): CrdSpec {
  return crd.spec as CrdSpec;
}

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
    strategy: strategyOf(version),
    schema,
    prune: (object) => compiled().prune(object),
    applyDefaults: (object) => compiled().applyDefaults(object),
    structural: compiled,
  };
}

/** Selectable fields are named as in a field selector: `spec.color` for the path `.spec.color`. */
function strategyOf({ selectableFields = [] }: CrdVersion): Strategy {
  const fields = selectableFields.map(({ jsonPath }) => {
    const read = compileJsonPath(jsonPath);
    return [jsonPath.replace(/^\./, ''), (object: KubeObject) => String(read(object)[0] ?? '')] as const;
  });
  return { selectable: Object.fromEntries(fields) };
}
