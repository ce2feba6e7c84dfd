// Columns and objects that show what a custom kind's table says.

import type { PrinterColumn } from '../../../infra/apiserver/codec/table.ts';
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';

const column = (name: string, type: string, jsonPath: string, more: Partial<PrinterColumn> = {}): PrinterColumn => ({
  name,
  type,
  jsonPath,
  ...more,
});

/** One column per kind of path and type; the values of `gadgets` give each something to print. */
export const columns: readonly PrinterColumn[] = [
  column('Text', 'string', '.spec.text', { description: 'A text.', priority: 1, format: 'password' }),
  column('Whole', 'integer', '.spec.whole'),
  column('Number', 'number', '.spec.number'),
  column('Flag', 'boolean', '.spec.flag'),
  column('When', 'date', '.spec.when'),
  column('Whole as text', 'string', '.spec.whole'),
  column('Number as text', 'string', '.spec.number'),
  column('Flag as text', 'string', '.spec.flag'),
  column('Text as whole', 'integer', '.spec.text'),
  column('Number as whole', 'integer', '.spec.number'),
  column('Text as flag', 'boolean', '.spec.text'),
  column('Text as date', 'date', '.spec.text'),
  column('Object as text', 'string', '.spec.map'),
  column('List as text', 'string', '.spec.list'),
  column('All of a list', 'string', '.spec.list[*]'),
  column('First', 'string', '.spec.list[0]'),
  column('Last', 'string', '.spec.list[-1]'),
  column('Beyond', 'string', '.spec.list[7]'),
  column('Names', 'string', '.spec.conditions[*].type'),
  column('Ready', 'string', '.status.conditions[?(@.type=="Ready")].status'),
  column('Ready, single quotes', 'string', ".status.conditions[?(@.type=='Ready')].status"),
  column('Not ready', 'string', '.status.conditions[?(@.type!="Ready")].type'),
  column('Existing', 'string', '.status.conditions[?(@.reason)].type'),
  column('Dotted', 'string', ".spec.map['a\\.b']"),
  column('Escaped', 'string', '.spec.map.a\\.b'),
  column('Label', 'string', '.metadata.labels.app'),
  column('Own name', 'string', '.metadata.name'),
  column('Age', 'date', '.metadata.creationTimestamp'),
];

const spec = {
  text: 'some text',
  whole: 12,
  number: 1.5,
  flag: false,
  when: '2020-01-01T00:00:00Z',
  map: { 'a.b': 'dotted', c: 'd' },
  list: ['x', 'y', 'z'],
  conditions: [{ type: 'A' }, { type: 'B' }],
};
const status = {
  conditions: [
    { type: 'Ready', status: 'True', reason: 'Fine' },
    { type: 'Other', status: 'False' },
  ],
};

/** Objects by name: one with everything, and some that lack or twist what columns look for. */
export const gadgets: Readonly<Record<string, JsonObject>> = {
  full: { metadata: { labels: { app: 'web' } }, spec, status },
  empty: {},
  zeros: { spec: { text: '', whole: 0, number: 0, flag: true, list: [], map: {} } },
  large: {
    spec: { whole: 9007199254740991, number: 1e15, text: '<a & "b">\nc', list: ['<', 'a b'], map: { c: '<"' } },
  },
  small: { spec: { number: 0.0001, when: 'never', conditions: [{}] } },
};
