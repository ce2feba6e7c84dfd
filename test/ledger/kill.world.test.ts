// `kill -9` of gateway processes and of PostgreSQL while money is spent.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { startChild } from '../support/child.ts';
import { inTime } from '../support/in-time.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type Order, openLedger } from './spender.ts';

let server: TestPostgres;
const folder = mkdtempSync(join(tmpdir(), 'ledger-kill-'));

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a spender until `kill -9`, after `settled` settlements; returns its output lines. */
async function spendUntilKilled(order: Order, settled: number): Promise<string[]> {
  const child = startChild(process.execPath, [join(import.meta.dirname, 'spender.ts'), JSON.stringify(order)]);
  await child.until(() => child.stdout().split('settled').length > settled);
  const { stdout } = await child.end('SIGKILL');
  return stdout.slice(0, stdout.lastIndexOf('\n')).split('\n');
}

/** The total charge of each id. */
async function chargedIn(connection: DatabaseConnection): Promise<Map<string, bigint>> {
  const text = 'select id, sum(cost)::text as cost from gateway_operator.ledger_row group by id';
  const rows = await server.query<{ id: string; cost: string }>(connection, text);
  return new Map(rows.map(({ id, cost }) => [id, BigInt(cost)]));
}

const scope = (last: string, kind: ScopePolicy['kind'], limit: string): ScopePolicy => ({
  scopeId: `00000000-0000-4000-8000-00000000000${last}`,
  kind,
  name: kind,
  blocked: false,
  models: [],
  anchor: Date.now() - 3_600_000,
  budget: { limit, duration: '30d', alignment: 'Rolling' },
});

test('repeated kill -9 of the gateway: every completed reply is charged once, no request more than its reservation, no budget is exceeded', async () => {
  const connection = await server.createDatabase();
  const scopes = [scope('1', 'key', '100000000000'), scope('2', 'team', '1500000')];
  const order: Order = { connection, folder, instanceUid: 'instance-1', scopes };
  const first = openLedger(order);
  await first.database.migrate();
  await first.close();

  const lines: string[] = [];
  for (const settled of [500, 800, 200, 1100, 10, 900]) lines.push(...(await spendUntilKilled(order, settled)));
  const last = openLedger(order);
  await last.ledger.start();
  const spends = await last.ledger.spend(scopes);
  await last.close();

  const charged = await chargedIn(connection);
  const seen = {
    grown: 0,
    reserved: new Map<string, bigint>(),
    settled: new Map<string, bigint>(),
    released: new Set<string>(),
  };
  for (const [what, id = '', amount = '0'] of lines.map((line) => line.split(' '))) {
    // One that was killed while it grew may be charged either size.
    if (what === 'reserved' || what === 'grows') seen.reserved.set(id, BigInt(amount));
    if (what === 'grown') seen.grown += 1;
    if (what === 'settled') seen.settled.set(id, BigInt(amount));
    if (what === 'released') seen.released.add(id);
  }
  const wrong = [...seen.settled].filter(([id, cost]) => charged.get(id) !== cost);
  expect(seen.settled.size).toBeGreaterThan(500);
  expect(seen.grown).toBeGreaterThan(50);
  expect(wrong).toEqual([]);
  expect([...seen.released].filter((id) => (charged.get(id) ?? 0n) !== 0n)).toEqual([]);
  const tooMuch = [...charged].filter(([id, cost]) => cost > (seen.reserved.get(id) ?? 1000n));
  expect(tooMuch).toEqual([]);
  const total = [...charged.values()].reduce((sum, cost) => sum + cost, 0n);
  expect(spends).toMatchObject({ ok: true, value: [{ spent: total }, { spent: total }] });
  expect(total <= 1_500_000n).toBe(true);
});

test('kill -9 and a freeze of PostgreSQL under load: each settlement is booked once, unloaded budgets are refused in time', async () => {
  const connection = await server.createDatabase();
  const key = scope('1', 'key', '100000000000');
  const order: Order = { connection, folder: join(folder, 'outage'), instanceUid: 'instance-1', scopes: [key] };
  const { ledger, database, close } = openLedger(order);
  await database.migrate();
  await ledger.start();
  const settled = new Map<string, bigint>();
  const request = { amount: 100n, minAmount: 1n, model: 'small', identifier: 'small-1' };
  const spendFor = async (millis: number): Promise<void> => {
    for (const until = Date.now() + millis; Date.now() < until; ) {
      const reservation = await ledger.reserve({ ...request, scopes: [key] });
      if (!reservation.ok) throw new Error(JSON.stringify(reservation.failure));
      const tokens = { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 };
      const cost = BigInt(settled.size % 100);
      await ledger.settle(reservation.value, { cost, tokens, model: 'small', identifier: 'small-1', estimated: false });
      settled.set(reservation.value.id, cost);
      // A hundred thousand unbooked settlements would be refused, and the ledger alone is fast enough for that.
      await pause(1);
    }
  };
  /** The counter of an earlier scope may be loaded by now, so each request is of another one. */
  const isRefused = async (unknown: string): Promise<void> => {
    const scopes = [key, scope(unknown, 'user', '1000')];
    const refused = await inTime(ledger.reserve({ ...request, scopes }));
    expect(refused).toMatchObject({ ok: false, failure: { reason: 'unavailable' } });
  };

  await spendFor(300);
  await server.kill();
  await isRefused('3');
  await spendFor(500);
  await server.start();
  await spendFor(300);
  const thaw = server.freeze();
  try {
    await Promise.all([isRefused('4'), spendFor(2500)]);
  } finally {
    thaw();
  }
  await spendFor(300);
  await ledger.flush();
  await close();
  const charged = await chargedIn(connection);
  expect(settled.size).toBeGreaterThan(100);
  expect([...settled].filter(([id, cost]) => charged.get(id) !== cost)).toEqual([]);
  expect(charged.size).toBe(settled.size);
});
