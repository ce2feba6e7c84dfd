// Which managers does an object name in `metadata.managedFields`, and how are they written down?
import { isObject, type JsonObject } from '../schema/json.ts';
import { difference, type FieldSet, fromFieldsV1, setOf, toFieldsV1 } from './field-set.ts';

/** One entry of managedFields. */
export type Manager = {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly time?: string;
  readonly subresource?: string;
  readonly fields: FieldSet;
};

/** Managers by their identity: an applier is the same whatever version it applies, an updater is not. */
export type Managers = ReadonlyMap<string, Manager>;

// No manager owns what names an object and what the server writes.
const unowned = setOf([
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((name) => ['f:metadata', `f:${name}`]),
]);

export function identityOf({ manager, operation, apiVersion, subresource }: Omit<Manager, 'fields' | 'time'>): string {
  return JSON.stringify([operation, manager, operation === 'Apply' ? '' : apiVersion, subresource ?? '']);
}

/** The managers that an object names; entries that cannot be read are left out. */
export function managersOf(object: JsonObject | undefined): Managers {
  const entries = isObject(object?.metadata) ? object.metadata.managedFields : undefined;
  const managers = new Map<string, Manager>();
  for (const entry of Array.isArray(entries) ? entries : []) {
    const read = readEntry(entry);
    if (read) managers.set(identityOf(read), read);
  }
  return managers;
}

function readEntry(entry: unknown): Manager | undefined {
  if (!isObject(entry) || (entry.operation !== 'Apply' && entry.operation !== 'Update')) return undefined;
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return {
    manager: text(entry.manager),
    operation: entry.operation,
    apiVersion: text(entry.apiVersion),
    fields: fromFieldsV1(entry.fieldsV1),
    ...(typeof entry.time === 'string' ? { time: entry.time } : {}),
    ...(typeof entry.subresource === 'string' && entry.subresource !== '' ? { subresource: entry.subresource } : {}),
  };
}

/** The object with these managers written down, those that own nothing left out; the order is the API server's. */
export function withManagers(object: JsonObject, managers: Managers): JsonObject {
  const entries = [...managers.values()]
    .map((manager) => ({ ...manager, fields: difference(manager.fields, unowned) }))
    .filter(({ fields }) => fields.size > 0)
    .sort(byOperationAndTime)
    .map(writeEntry);
  const { managedFields: _, ...metadata } = isObject(object.metadata) ? object.metadata : {};
  return { ...object, metadata: entries.length > 0 ? { ...metadata, managedFields: entries } : metadata };
}

function writeEntry({ manager, operation, apiVersion, time, subresource, fields }: Manager): JsonObject {
  return {
    ...(manager === '' ? {} : { manager }),
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: toFieldsV1(fields),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

function byOperationAndTime(a: Manager, b: Manager): number {
  const keys = (one: Manager) => [one.operation, one.time ?? '', one.manager, one.apiVersion, one.subresource ?? ''];
  const [left, right] = [keys(a), keys(b)];
  const at = left.findIndex((key, i) => key !== right[i]);
  return at < 0 ? 0 : (left[at] ?? '') < (right[at] ?? '') ? -1 : 1;
}
