// In which form does the caller want the answer?
import { stringify as toYaml } from 'yaml';
import { apiError, type Outcome } from '../api-error.ts';
import { type Column, toTable } from '../codec/table.ts';
import type { KubeObject } from '../object.ts';
import type { JsonObject } from '../schema/json.ts';

export type Representation = {
  readonly shape: 'object' | 'table' | 'metadata';
  readonly encoding: 'application/json' | 'application/yaml';
  /** What a table's rows carry of their object. */
  readonly include: 'None' | 'Metadata' | 'Object';
};

type Parameters = Readonly<Record<string, string>>;

/** The first form of the Accept header that can be served. Protobuf cannot; clients that want it also take JSON. */
export function negotiate(accept: string, query: URLSearchParams): Outcome<Representation> {
  const include = query.get('includeObject') ?? 'Metadata';
  for (const entry of accept === '' ? ['*/*'] : accept.split(',')) {
    const [type = '', ...rest] = entry.split(';').map((part) => part.trim());
    const parameters = Object.fromEntries(rest.map((part) => part.split('='))) as Parameters;
    const encoding = encodingOf(type.toLowerCase());
    const shape = encoding && shapeOf(parameters);
    if (encoding !== undefined && shape !== undefined) {
      return { shape, encoding, include: include === 'None' || include === 'Object' ? include : 'Metadata' };
    }
  }
  const known = 'application/json, application/yaml';
  return apiError(
    406,
    'NotAcceptable',
    `only the following media types are accepted: ${known} (the embedded cluster does not answer in protobuf)`,
  );
}

function encodingOf(type: string): Representation['encoding'] | undefined {
  if (type === 'application/json' || type === 'application/*' || type === '*/*') return 'application/json';
  return type === 'application/yaml' ? type : undefined;
}

function shapeOf({ as, g, v }: Parameters): Representation['shape'] | undefined {
  if (as === undefined) return 'object';
  if (g !== 'meta.k8s.io' || v !== 'v1') return undefined;
  if (as === 'Table') return 'table';
  return as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList' ? 'metadata' : undefined;
}

export function encode(value: unknown, { encoding }: Pick<Representation, 'encoding'>): string {
  return encoding === 'application/yaml' ? toYaml(value) : `${JSON.stringify(value)}\n`;
}

export type Rows = {
  readonly objects: readonly KubeObject[];
  readonly columns: readonly Column[];
  readonly now: number;
  readonly listMeta?: JsonObject;
  readonly definitions?: boolean;
};

/** A `meta.k8s.io/v1` Table of objects. */
export function tableOf({ objects, columns, now, ...more }: Rows, { include }: Representation): JsonObject {
  return toTable({ objects, columns, now: new Date(now), include, ...more });
}

export function partialMetadata({ metadata }: KubeObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}
