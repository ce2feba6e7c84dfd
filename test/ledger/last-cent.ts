// A gateway process that competes for the last cent: it takes all its reservations concurrently and prints the
// outcomes.
import { randomBytes } from 'node:crypto';
import { writeSync } from 'node:fs';
import { openCounterStore } from '#adapters/backends/open-counter-store.ts';
import { createMemoryJournal } from '#adapters/memory/journal.ts';
import { createIds } from '#adapters/process/ids.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Ledger } from '#core/ports/ledger.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { createMemoryEpochs } from '../doubles/epochs.ts';
import { createMemoryLedgerDatabase } from '../doubles/ledger-database.ts';
import { createMemoryLedgerRows } from '../doubles/ledger-rows.ts';

export interface Rush {
  readonly connection: StoreConnection;
  readonly instanceUid: string;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  readonly requests: number;
  readonly amount: string;
}

const log = { info: () => undefined, warn: console.error, error: console.error };

/**
 * Prints `ready`, waits for a line, sends all requests, and prints how many were reserved and why the others were not.
 */
async function rush({ connection, instanceUid, scopes, requests, amount }: Rush): Promise<void> {
  const clock = { now: () => Date.now() };
  const epochs = createMemoryEpochs({ clock });
  const ledgerRows = createMemoryLedgerRows();
  const ledger = createLedger({
    instanceUid,
    clock,
    log,
    epochs,
    journal: createMemoryJournal({ records: [] }),
    database: {
      ...createMemoryLedgerDatabase({ epochs, ledgerRows }),
      scopesOfOtherInstances: ledgerRows.scopesOfOtherInstances,
    },
    counterStore: openCounterStore(connection, { instanceUid, clock, log }).counterStore,
    ids: createIds({ clock, random: (count) => randomBytes(count) }),
    metrics: { add: () => undefined, set: () => undefined, observe: () => undefined },
    timer: (millis, callback) => {
      const timeout = setTimeout(callback, millis);
      return () => clearTimeout(timeout);
    },
  });
  await ledger.start();
  await warmUp(ledger);
  await ledger.spend(scopes);
  writeSync(1, 'ready\n');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  const size = BigInt(amount);
  const request = { scopes, amount: size, minAmount: size, model: 'small', identifier: 'small-1' };
  const results = await Promise.all(Array.from({ length: requests }, () => ledger.reserve(request)));
  const outcomes = results.map((result) => (result.ok ? 'reserved' : result.failure.reason));
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  writeSync(1, `${JSON.stringify(counts)}\n`);
  process.exit(0);
}

/** A warm-up: on a busy machine, cold code takes longer for a thousand concurrent requests than a client waits. */
async function warmUp(ledger: Ledger): Promise<void> {
  const other: ScopePolicy = {
    scopeId: 'warm',
    kind: 'key',
    name: 'warm',
    blocked: false,
    models: [],
    anchor: Date.now(),
  };
  const request = { scopes: [other], amount: 1n, minAmount: 1n, model: 'small', identifier: 'small-1' };
  for (let round = 0; round < 20; round += 1) {
    const reservations = await Promise.all(Array.from({ length: 50 }, () => ledger.reserve(request)));
    await Promise.all(
      reservations.map((reservation) => (reservation.ok ? ledger.release(reservation.value) : undefined)),
    );
  }
}

if (process.argv[2] !== undefined && import.meta.main) await rush(JSON.parse(process.argv[2]));
