// Objects in the form that a caller asks for: as they are, or as a table. Always in JSON.
import { apiError, type Outcome } from '../api-error.ts';
import { toTable } from '../codec/table.ts';
import type { KubeObject } from '../object.ts';
import { apiVersionOf, type Resource } from '../resource.ts';
import type { JsonObject } from '../schema/json.ts';

export type Representation = {
  readonly isTable: boolean;
  /** The part of its object that a table's row carries. */
  readonly include: 'None' | 'Metadata' | 'Object';
};

type Parameters = Readonly<Record<string, string>>;

/** The first form of the Accept header that can be served. Protobuf cannot; clients that want it also take JSON. */
export function negotiate(accept: string, query: URLSearchParams): Outcome<Representation> {
  const include = query.get('includeObject') ?? 'Metadata';
  for (const entry of accept === '' ? ['*/*'] : accept.split(',')) {
    const [type = '', ...rest] = entry.split(';').map((part) => part.trim());
    const parameters = Object.fromEntries(rest.map((part) => part.split('='))) as Parameters;
    if (!jsonTypes.has(type.toLowerCase()) || !isServed(parameters)) continue;
    return {
      isTable: parameters.as === 'Table',
      include: include === 'None' || include === 'Object' ? include : 'Metadata',
    };
  }
  const message =
    'only the following media types are accepted: application/json (this API server answers in JSON alone)';
  return apiError(406, 'NotAcceptable', message);
}

const jsonTypes: ReadonlySet<string> = new Set(['application/json', 'application/*', '*/*']);

/** A client that asks for metadata alone reads them from the whole object too. */
function isServed({ as, g, v }: Parameters): boolean {
  return as === undefined || (/^(Table|PartialObjectMetadata(List)?)$/.test(as) && g === 'meta.k8s.io' && v === 'v1');
}

export type RepresentationOptions = {
  readonly resource: Resource;
  readonly form: Representation;
  /** For ages, in milliseconds since 1970. */
  readonly now: number;
};

export function showObject(object: KubeObject, { resource, form, now }: RepresentationOptions): JsonObject {
  if (!form.isTable) return object;
  const { resourceVersion } = object.metadata;
  return toTable([object], { columns: resource.columns, now, include: form.include, listMeta: { resourceVersion } });
}

/** A page of a list as a List or a Table. */
export function showPage(page: Page, { resource, form, now }: RepresentationOptions): JsonObject {
  const { objects, metadata } = page;
  if (form.isTable) {
    return toTable(objects, { columns: resource.columns, now, include: form.include, listMeta: metadata });
  }
  const items = resource.custom ? objects : objects.map(({ kind: _, apiVersion: __, ...rest }) => rest);
  return { kind: resource.listKind, apiVersion: apiVersionOf(resource), metadata, items };
}

/** A list, or a part of one; its metadata say where the next part begins. */
export type Page = { readonly objects: readonly KubeObject[]; readonly metadata: JsonObject };
