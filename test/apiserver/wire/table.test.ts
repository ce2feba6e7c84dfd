// Tables say what a real API server's say: the golden file is its answers (wire.world.test.ts records them).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { JsonPathError, jsonPath } from '../../../infra/apiserver/codec/json-path.ts';
import { age, crdColumns, humanDuration, toTable } from '../../../infra/apiserver/codec/table.ts';
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import { columns, gadgets } from './columns.ts';

const golden: { columnDefinitions: unknown[]; cells: Record<string, unknown[]> } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'columns.golden.json'), 'utf8'),
);
const now = new Date('2026-11-21T12:05:10Z');
const request = { now: now.getTime(), listMeta: {} };

function tableOf(name: string, declared = columns): JsonObject {
  const object = gadgets[name] ?? {};
  const metadata = { ...(object.metadata as JsonObject), name, creationTimestamp: '2026-11-21T12:00:00Z' };
  return toTable([{ ...object, metadata }], { ...request, columns: crdColumns(declared), include: 'Metadata' });
}

describe('a custom kind in a table', () => {
  test('has the columns that it declares', () => {
    expect(tableOf('full').columnDefinitions).toEqual(golden.columnDefinitions);
  });

  test.each(Object.keys(gadgets))('shows the cells of "%s"', (name) => {
    const [row] = tableOf(name).rows as { cells: unknown[] }[];
    const dated = columns.map(({ type }) => type === 'date');
    const undated = (cells: readonly unknown[]) =>
      cells.filter((cell, i) => !(dated[i - 1] && /^\d+\w+/.test(String(cell))));
    expect(undated(row?.cells ?? [])).toEqual(undated(golden.cells[name] ?? []));
  });

  test('shows name and age where it declares nothing', () => {
    const table = tableOf('empty', []);
    expect((table.columnDefinitions as { name: string }[]).map(({ name }) => name)).toEqual(['Name', 'Age']);
    expect((table.rows as { cells: unknown[] }[])[0]?.cells).toEqual(['empty', '5m10s']);
  });

  test('a row carries the metadata of its object, the object, or nothing', () => {
    const objects = [{ metadata: { name: 'a' }, spec: {} }];
    const rowsWith = (include: 'None' | 'Metadata' | 'Object') =>
      toTable(objects, { ...request, columns: [], include }).rows;
    expect(rowsWith('None')).toEqual([{ cells: [] }]);
    expect(rowsWith('Object')).toEqual([{ cells: [], object: objects[0] }]);
    const partial = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'a' } };
    expect(rowsWith('Metadata')).toEqual([{ cells: [], object: partial }]);
  });

  test('a watch sends its column definitions once', () => {
    const table = toTable([], { ...request, columns: crdColumns(columns), include: 'None', definitions: false });
    expect(table.columnDefinitions).toBeNull();
  });
});

test.each([
  [0, '0s'],
  [-900, '0s'],
  [-5_000, '<invalid>'],
  [119_000, '119s'],
  [120_000, '2m'],
  [310_000, '5m10s'],
  [600_000, '10m'],
  [10_799_000, '179m'],
  [10_800_000, '3h'],
  [12_600_000, '3h30m'],
  [8 * 3_600_000, '8h'],
  [48 * 3_600_000, '2d'],
  [50 * 3_600_000, '2d2h'],
  [9 * 86_400_000, '9d'],
  [800 * 86_400_000, '2y70d'],
  [9 * 365 * 86_400_000, '9y'],
])('%d ms are %s', (milliseconds, text) => {
  expect(humanDuration(milliseconds)).toBe(text);
});

test('a time that is not there or cannot be read is unknown', () => {
  expect([age(undefined, now), age('soon', now)]).toEqual(['<unknown>', '<unknown>']);
});

test.each(['.a[', '.a[?(@.b==]', '[?(1)]', '.a..b'])('the JSONPath %s is refused', (path) => {
  expect(() => jsonPath(path)).toThrow(JsonPathError);
});
