// Tables: the columns that `kubectl get` prints, and ages in kubectl's words (5m10s, 3d4h).
import { goJson } from '../schema/go-format.ts';
import { type JsonObject, objectAt } from '../schema/json.ts';
import { jsonPath } from './json-path.ts';

/** A CRD's `additionalPrinterColumns` entry. */
export type PrinterColumn = {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
};

/** A column with the cell that it makes of an object. */
export type Column = Required<Omit<PrinterColumn, 'jsonPath'>> & {
  cell(object: JsonObject, now: Date): string | number | boolean | null;
};

export type TableRequest = {
  readonly columns: readonly Column[];
  /** Milliseconds since 1970. */
  readonly now: number;
  /** `includeObject` of the request: the content of a row's `object`. */
  readonly include: 'None' | 'Metadata' | 'Object';
  /** `metadata` of the list: resourceVersion, continue. */
  readonly listMeta: JsonObject;
  /** A watch sends the column definitions with its first event only. */
  readonly definitions?: boolean;
};

/** A `meta.k8s.io/v1` Table, for a list, one object or a watch event. */
export function toTable(objects: readonly JsonObject[], request: TableRequest): JsonObject {
  const { columns, now, include, listMeta, definitions = true } = request;
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: listMeta,
    columnDefinitions: definitions ? columns.map(({ cell: _, ...definition }) => definition) : null,
    rows: objects.map((object) => ({
      cells: columns.map((column) => column.cell(object, new Date(now))),
      ...(include === 'None' ? {} : { object: include === 'Object' ? object : partialMetadata(object) }),
    })),
  };
}

function partialMetadata({ metadata }: JsonObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description:
    'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names',
  priority: 0,
  cell: (object) => String(objectAt(object, 'metadata').name ?? ''),
};

const createdAt =
  'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata';

const ageColumn: Column = {
  name: 'Age',
  type: 'date',
  format: '',
  description: createdAt,
  priority: 0,
  cell: (object, now) => age(objectAt(object, 'metadata').creationTimestamp, now),
};

/** The columns of a CRD: the name, then those that it declares; without a declaration the age. */
export function crdColumns(declared: readonly PrinterColumn[] | undefined): Column[] {
  return [nameColumn, ...(declared && declared.length > 0 ? declared.map(toColumn) : [ageColumn])];
}

/** The columns of a kind that declares none and is not custom: name and age. */
export const defaultColumns: readonly [name: Column, age: Column] = [nameColumn, { ...ageColumn, type: 'string' }];

function toColumn({ name, type, jsonPath: path, format = '', description = '', priority = 0 }: PrinterColumn): Column {
  const find = jsonPath(path);
  return {
    name,
    type,
    format,
    description: description || `Custom resource definition column (in JSONPath format): ${path}`,
    priority,
    cell: (object, now) => cell(find(object)[0], type, now),
  };
}

/** The first value found, if it is of the column's type; a text column prints whatever it is. */
function cell(value: unknown, type: string, now: Date): string | number | boolean | null {
  if (value === undefined || value === null) return null;
  if (type === 'string') return typeof value === 'string' ? value : goJson(value);
  if (type === 'date')
    return typeof value === 'string' ? age(value, now, value === '' ? '<unknown>' : '<invalid>') : null;
  if (type === 'boolean') return typeof value === 'boolean' ? value : null;
  if (typeof value !== 'number') return null;
  return type === 'integer' ? Math.trunc(value) : value;
}

/**
 * `duration.HumanDuration` of Kubernetes: two units at most, coarser the older. A time that is absent or cannot be read
 * is `unreadable`.
 */
export function age(timestamp: unknown, now: Date, unreadable = '<unknown>'): string {
  const then = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN;
  return Number.isNaN(then) ? unreadable : humanDuration(now.getTime() - then);
}

/** Milliseconds as kubectl writes a duration. */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 192) return two(days, 'd', hours % 24, 'h');
  if (hours < 24 * 365 * 2) return `${days}d`;
  const years = Math.trunc(days / 365);
  return years < 8 ? two(years, 'y', days % 365, 'd') : `${years}y`;
}

function two(major: number, majorUnit: string, minor: number, minorUnit: string): string {
  return minor === 0 ? `${major}${majorUnit}` : `${major}${majorUnit}${minor}${minorUnit}`;
}
