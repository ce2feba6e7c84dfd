// A process without HTTP that charges random VirtualKeys, with a real PostgreSQL: through the ledger (journal and Redis
// too), or only by booking rows.
import { randomUUID } from 'node:crypto';
import { createDatabase } from '#adapters/postgres/database.ts';
import { spendWindow } from '#core/money/window.ts';
import { type Order, openLedger } from '../../ledger/spender.ts';
import { SURROUNDINGS } from '../ledger/measured.ts';
import { COST, scopesOf } from './keys.ts';

export interface SpenderOrder extends Omit<Order, 'scopes'> {
  /** `ledger`: reserve and settle. `rows`: only book, in batches of an account. */
  readonly through: 'ledger' | 'rows';
  /** The open epoch of the counter store. */
  readonly epoch: number;
  readonly keys: number;
  readonly anchor: number;
  /** The process ends after so many requests. */
  readonly requests: number;
}

export interface SpenderReport {
  /** Requests that were charged. */
  readonly charged: number;
  /** Requests that a spent budget refused. */
  readonly refused: number;
  /** Reservations that were repeated, because PostgreSQL or Redis did not answer in time. */
  readonly repeated: number;
  /** Milliseconds of CPU. */
  readonly cpu: number;
  readonly isDone: boolean;
}

/** Concurrent requests. */
const CLIENTS = 256;
/** Rows of a batch: what a busy gateway settles in a fifth of a second. */
const BATCH = 2000;
const REPORT_EVERY = 500;
const PAUSE = 50;

const SETTLEMENT = {
  cost: COST,
  tokens: { input: 24, output: 20, cachedInput: 0, cacheWrite: 0 },
  model: 'sample-small',
  identifier: 'sample-small-1',
  estimated: false,
};

const counts = { charged: 0, refused: 0, repeated: 0 };
const report = (isDone: boolean): void => {
  const { user, system } = process.cpuUsage();
  process.send?.({ ...counts, cpu: (user + system) / 1000, isDone } satisfies SpenderReport);
};
const randomScopes = ({ keys, anchor }: SpenderOrder) => scopesOf(Math.floor(Math.random() * keys), anchor);

async function reserveAndSettle(order: SpenderOrder): Promise<void> {
  const { ledger, close } = openLedger({ ...order, scopes: [] });
  await ledger.start();
  const { model, identifier } = SETTLEMENT;
  let left = order.requests;
  const client = async () => {
    while (left > 0) {
      left -= 1;
      const request = { scopes: randomScopes(order), amount: 2n * COST, minAmount: COST, model, identifier };
      const result = await ledger.reserve(request);
      if (result.ok) {
        await ledger.settle(result.value, SETTLEMENT);
        counts.charged += 1;
      } else if (result.failure.reason === 'exceeded') counts.refused += 1;
      else {
        counts.repeated += 1;
        left += 1;
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  await ledger.flush();
  await close();
}

async function bookRows(order: SpenderOrder): Promise<void> {
  const { connection, instanceUid, epoch, requests } = order;
  const database = createDatabase(connection, SURROUNDINGS);
  const { bookBatch } = database.ledgerDatabase(instanceUid, SURROUNDINGS.random);
  const id = randomUUID();
  for (let batch = 1; counts.charged < requests; batch += 1) {
    const now = Date.now();
    const rows = Array.from({ length: Math.min(BATCH, requests - counts.charged) }, () => ({
      ...SETTLEMENT,
      id: SURROUNDINGS.ids.next(),
      kind: 'settled' as const,
      scopeWindows: randomScopes(order).map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now) })),
      settledAt: now,
    }));
    const account = { id, batch, callNumber: batch };
    // The count of calls stays that of the counter store, which these rows do not ask.
    const { outcome, rejected } = await bookBatch({ epoch, account, storeCalls: 0, rows });
    if (outcome !== 'booked' || rejected.length > 0) throw new Error(`${outcome}, ${rejected.length} rejected`);
    counts.charged += rows.length;
  }
  await database.close();
}

process.on('disconnect', () => process.exit(0));
process.on('message', async (order: SpenderOrder) => {
  const timer = setInterval(() => report(false), REPORT_EVERY);
  await (order.through === 'ledger' ? reserveAndSettle : bookRows)(order);
  clearInterval(timer);
  report(true);
});
