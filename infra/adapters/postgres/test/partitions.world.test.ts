import { expect, test } from 'vitest';
import { idAt, ledgerRowOf } from '#core/ports/test/ledger-row.fixture.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createPartitions } from '../partitions.ts';
import { createSession } from '../session.ts';

/** Milliseconds after which a waiting statement fails. */
const LIMIT = 5000;

test('processes that book at the same time do not wait for each other where the days of their ledger rows exist', async () => {
  const server = await sharedPostgres();
  const connection = await server.migratedDatabase();
  const [one, two] = [connection, connection].map((of) => createSession(of, { log: createMemoryLog() }));
  if (one === undefined || two === undefined) throw new Error('there are two');
  try {
    const ids = [ledgerRowOf().id];
    await one.transaction(LIMIT, (query) => createPartitions(one).ensureFor(query, ids));
    const inOther = await one.transaction(LIMIT, async (query) => {
      await createPartitions(one).ensureFor(query, ids);
      return two.transaction(LIMIT, (other) =>
        createPartitions(two)
          .ensureFor(other, ids)
          .then(() => 'made'),
      );
    });
    expect(inOther).toBe('made');
  } finally {
    await Promise.all([one.close(), two.close()]);
  }
});

test('a booking makes no other day than its own, so it does not wait for a long ANALYZE of the table', async () => {
  const server = await sharedPostgres();
  const connection = await server.migratedDatabase();
  const [booking, analyzing] = [connection, connection].map((of) => createSession(of, { log: createMemoryLog() }));
  if (booking === undefined || analyzing === undefined) throw new Error('there are two');
  try {
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10).replaceAll('-', '_');
    await booking.query(
      LIMIT,
      `drop table gateway_operator.ledger_row_${tomorrow}, gateway_operator.ledger_set_${tomorrow}`,
    );
    await analyzing.transaction(LIMIT, async (query) => {
      await query('lock table only gateway_operator.ledger_row in share update exclusive mode');
      await booking.transaction(LIMIT, (own) =>
        createPartitions(booking).ensureFor(own, [ledgerRowOf({ id: idAt(Date.now()) }).id]),
      );
    });
    await createPartitions(booking).ensureUpcoming();
    const made = await booking.query(
      LIMIT,
      `select to_regclass('gateway_operator.ledger_row_${tomorrow}')::text as name`,
    );
    expect(made).toEqual([{ name: expect.stringContaining(tomorrow) }]);
  } finally {
    await Promise.all([booking.close(), analyzing.close()]);
  }
});
