import { expect, test } from 'vitest';
import { ledgerRowOf } from '#core/ports/test/ledger-row.fixture.ts';
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
