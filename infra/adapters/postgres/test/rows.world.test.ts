// Rows that no operator wrote: the database counts as unreachable for the instance that names it.
import { randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase } from '../database.ts';

const CLAIM = 'update gateway_operator.claim set';
test.each([
  ['a policy that is a text', `${CLAIM} digest = '"x"'`, 'claims'],
  ['further budgets that are none', `${CLAIM} digest = digest || '{"furtherBudgets": [null]}'`, 'claims'],
  ['a budget without a duration', `${CLAIM} digest = digest || '{"budget": {"limit": "1"}}'`, 'claims'],
  [
    'a budget of many digits',
    `${CLAIM} digest = jsonb_set(digest, '{budget,limit}', to_jsonb(repeat('7', 1000)))`,
    'claims',
  ],
  [
    'more further budgets than a VirtualKey may have',
    `${CLAIM} digest = jsonb_set(digest, '{furtherBudgets}', (
      select jsonb_agg(jsonb_build_object('limit', '1', 'duration', '1d', 'scopeId', '')) from generate_series(1, 73)))`,
    'claims',
  ],
  ['a name without end', `${CLAIM} holder_name = repeat('x', 10000)`, 'claims'],
  ['a creation that is no date in JavaScript', `${CLAIM} created_at = '290000-01-01'`, 'claims'],
  [
    'an adoption at no date',
    `update gateway_operator.instance set adopted_from = 'x', adopted_at = '290000-01-01'`,
    'instance',
  ],
] as const)('%s', async (_, damage, call) => {
  const server = await sharedPostgres();
  const connection = await server.migratedDatabase();
  const database = createDatabase(connection, { log: createMemoryLog() });
  onTestFinished(() => database.close());
  await database.openInstance({ uid: 'i', namespace: 'default', name: 'main' });
  const budget = { limit: '1', duration: '1d', alignment: 'Rolling' } as const;
  await database.putScope({
    instanceUid: 'i',
    kind: 'team',
    alias: 'red',
    holder: { uid: 'u', namespace: 'default', name: 'red' },
    policy: { scopeId: randomUUID(), kind: 'team', name: 'red', blocked: false, models: [], anchor: 0, budget },
    generation: 1,
  });
  const [claim] = await database.claims('i');
  expect(claim).toMatchObject({ alias: 'red', policy: { budget }, values: [] });
  await server.query(connection, damage);
  const calls =
    call === 'claims'
      ? [() => database.claims('i'), () => database.claimsOf('i', [{ kind: 'team', alias: 'red' }])]
      : [() => database.instance('i')];
  for (const ask of calls) await expect(ask()).rejects.toThrow(DatabaseUnreachable);
});

test('a sum of many digits: it would take seconds to print', async () => {
  const server = await sharedPostgres();
  const connection = await server.migratedDatabase();
  const database = createDatabase(connection, { log: createMemoryLog() });
  onTestFinished(() => database.close());
  const counter = { scopeId: randomUUID(), window: { start: 0, end: 1 } };
  await server.query(
    connection,
    `insert into gateway_operator.sum values ('${counter.scopeId}', 0, 1, repeat('7', 131000)::numeric)`,
  );
  await expect(database.sums([counter])).rejects.toThrow(DatabaseUnreachable);
});
