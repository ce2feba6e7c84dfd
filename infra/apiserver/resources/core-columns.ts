// Columns of `kubectl get` for core kinds, as the real server's tables have them. A kind that is not here shows its
// name and age.
import { age, type Column, defaultColumns } from '../codec/table.ts';
import { isObject, type JsonObject, member } from '../schema/json.ts';

type Cell = (object: JsonObject, now: Date) => unknown;

const column = (name: string, cell: Cell): Column => ({
  name,
  type: 'string',
  format: '',
  description: '',
  priority: 0,
  cell: cell as Column['cell'], // every cell below is a string, a number, a boolean or null
});

const [nameColumn, ageColumn] = defaultColumns;

const events: readonly Column[] = [
  column('Last Seen', (object, now) => age(object.lastTimestamp ?? object.eventTime ?? object.firstTimestamp, now)),
  column('Type', ({ type }) => text(type)),
  column('Reason', ({ reason }) => text(reason)),
  column('Object', ({ involvedObject: about }) => {
    return `${text(member(about, 'kind')).toLowerCase()}/${text(member(about, 'name'))}`;
  }),
  column('Message', ({ message }) => text(message).trim()),
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
};

function text(value: unknown): string {
  return String(value ?? '');
}

function sizeOf(value: unknown): number {
  return isObject(value) ? Object.keys(value).length : 0;
}
