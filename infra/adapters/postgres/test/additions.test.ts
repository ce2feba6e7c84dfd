import { expect, test } from 'vitest';
import { idAt, ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { growthOf, MAX_GROWTH } from '../../../../test/gateway/growth.ts';
import { createAdditions } from '../additions.ts';

const WINDOW = { start: Date.UTC(2026, 10, 1), end: Date.UTC(2026, 11, 1) };
const HOUR = Date.UTC(2026, 10, 15, 12);

/** The statements for one row per scope and second; each with the scopes of its columns. */
function statementsOf(scopes: number, seconds: number) {
  const additions = createAdditions();
  const scopeWindows = Array.from({ length: scopes }, (_, place) => ({ scopeId: scopeNumber(place), window: WINDOW }));
  for (let second = 0; second < seconds; second += 1)
    additions.add([{ ...ledgerRowOf({ id: idAt(HOUR + 1000 * second), cost: 1n }), scopeWindows }]);
  return [...additions.portions()].map(({ columns, isLast }) => {
    const list = (place: number) => String(columns[place]).slice(1, -1).split(',').filter(Boolean);
    return { sums: list(0), hours: list(5), amounts: list(7), usage: list(8), requests: list(12), isLast };
  });
}

test('a batch with very many own counters is added by several statements, each of bounded size', () => {
  const statements = statementsOf(12_000, 5);
  expect(statements.length).toBeGreaterThan(5);
  for (const { sums, hours, usage } of statements)
    expect(sums.length + hours.length + usage.length).toBeLessThanOrEqual(30_010);
  expect(statements.flatMap(({ sums }) => sums)).toHaveLength(60_000);
  const hours = statements.flatMap((statement) => statement.hours);
  expect(hours).toHaveLength(12_000);
  expect(new Set(statements.flatMap(({ amounts }) => amounts))).toEqual(new Set(['5']));
  expect(statements.flatMap(({ usage }) => usage)).toHaveLength(12_000);
  expect(new Set(statements.flatMap(({ requests }) => requests))).toEqual(new Set(['5']));
});

test('statements write in the order of scopes, all sums before the first hour: batches cannot deadlock', () => {
  const statements = statementsOf(12_000, 3);
  const [sums, hours] = [statements.flatMap((each) => each.sums), statements.flatMap((each) => each.hours)];
  expect(sums).toEqual(sums.toSorted());
  expect(hours).toEqual(hours.toSorted());
  const usage = statements.flatMap((each) => each.usage);
  expect(usage).toEqual(usage.toSorted());
  const firstHour = statements.findIndex((each) => each.hours.length > 0);
  expect(statements.slice(firstHour + 1).flatMap((each) => each.sums)).toEqual([]);
  // A recount adds to another window of a scope, so a scope is in one statement.
  expect(statements.reduce((count, each) => count + new Set(each.sums).size, 0)).toBe(12_000);
});

test('the usual batch, and a batch without a new row, are one statement', () => {
  expect(statementsOf(20, 2)).toMatchObject([{ isLast: true }]);
  expect(statementsOf(0, 0)).toMatchObject([{ sums: [], hours: [], isLast: true }]);
  expect(statementsOf(12_000, 3).filter(({ isLast }) => isLast)).toHaveLength(1);
  expect(statementsOf(12_000, 3).at(-1)).toMatchObject({ isLast: true });
});

test('the time of a batch grows in proportion to its rows, also if each has a model of its own', async () => {
  const rowsOf = (count: number) =>
    Array.from({ length: count }, (_, place) => ledgerRowOf({ id: idAt(HOUR + place), cost: 1n, model: `m-${place}` }));
  const growth = await growthOf((size) => {
    const rows = rowsOf(size);
    return async () => createAdditions().add(rows);
  }, 500);
  expect(growth).toBeLessThan(MAX_GROWTH);
});
