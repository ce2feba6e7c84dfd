// Columns of `kubectl get` for core kinds, as the real server's tables have them. A kind that is not here shows its name and age.
import { age, type Column, defaultColumns } from '../codec/table.ts';
import { isObject, type JsonObject, member } from '../schema/json.ts';

type Cell = (object: JsonObject, now: Date) => unknown;

const column = (name: string, cell: Cell, more: Partial<Column> = {}): Column => ({
  name,
  type: 'string',
  format: '',
  description: '',
  priority: 0,
  ...more,
  cell: cell as Column['cell'], // every cell below is a string, a number, a boolean or null
});
const wide = { priority: 1 };

const [nameColumn, ageColumn] = defaultColumns;

const webhooks = [
  nameColumn,
  column('Webhooks', ({ webhooks: all }) => (Array.isArray(all) ? all.length : 0), { type: 'integer' }),
  ageColumn,
];

const events: readonly Column[] = [
  column('Last Seen', (object, now) => age(object.lastTimestamp ?? object.eventTime ?? object.firstTimestamp, now)),
  column('Type', ({ type }) => text(type)),
  column('Reason', ({ reason }) => text(reason)),
  column('Object', ({ involvedObject: about }) => {
    return `${text(member(about, 'kind')).toLowerCase()}/${text(member(about, 'name'))}`;
  }),
  column('Subobject', ({ involvedObject }) => text(member(involvedObject, 'fieldPath')), wide),
  column('Source', (object) => text(member(object.source, 'component') || object.reportingComponent), wide),
  column('Message', ({ message }) => text(message).trim()),
  column('First Seen', (object, now) => age(object.firstTimestamp ?? object.eventTime, now), wide),
  column('Count', (object) => member(object.series, 'count') ?? object.count ?? 1, wide),
  column('Name', ({ metadata }) => text(member(metadata, 'name')), { ...wide, format: 'name' }),
];

/** By plural name. */
export const coreColumns: Readonly<Record<string, readonly Column[]>> = {
  configmaps: [nameColumn, column('Data', ({ data, binaryData }) => sizeOf(data) + sizeOf(binaryData)), ageColumn],
  secrets: [
    nameColumn,
    column('Type', ({ type }) => text(type)),
    column('Data', ({ data }) => sizeOf(data)),
    ageColumn,
  ],
  namespaces: [nameColumn, column('Status', ({ status }) => text(member(status, 'phase'))), ageColumn],
  events,
  customresourcedefinitions: [
    nameColumn,
    column('Created At', ({ metadata }) => member(metadata, 'creationTimestamp') ?? null, { type: 'date' }),
  ],
  mutatingwebhookconfigurations: webhooks,
  validatingwebhookconfigurations: webhooks,
};

function text(value: unknown): string {
  return String(value ?? '');
}

function sizeOf(value: unknown): number {
  return isObject(value) ? Object.keys(value).length : 0;
}
