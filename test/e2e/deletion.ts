// Deletion with the stock `kubectl`: it never sticks and never leaks silently, in any order.
import pg from 'pg';
import { expect, test } from 'vitest';
import type { Endpoints } from '../../infra/platforms/local/stack.ts';
import { eventually } from '../support/eventually.ts';
import { answerTo, slowModel, type TestStack } from '../support/stack.ts';

const KEY_VALUE = 'jsonpath={.status.isActive} {.status.keyValue}';

/** The cluster's garbage collector looks for new kinds every 30 s, and takes several rounds on a busy machine. */
const COLLECTED = 240_000;

/** Entries with a cost, of one model. */
async function ledgerRowsFor({ host, port, username, password, dbname }: Endpoints['database'], model: string) {
  const client = new pg.Client({ host, port, user: username, password, database: dbname });
  await client.connect();
  const text = `select count(*)::int as count
    from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id where s.model = $1 and r.cost > 0`;
  const { rows } = await client.query<{ count: number }>(text, [model]).finally(() => client.end());
  return rows[0]?.count;
}

export function describeDeletion(stack: () => TestStack): void {
  const ok = (...words: string[]) => stack().ok(...words);
  const apply = async (...objects: object[]) => {
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const { code, stderr } = await stack().kubectl(['apply', '-f', '-'], list);
    expect(`${code} ${stderr}`).toMatch(/^0 /);
  };
  const key = (alias: string, namespace = 'default', spec: object = {}) => ({
    apiVersion: 'auth.gateway-operator.dev/v1alpha1',
    kind: 'VirtualKey',
    metadata: { name: alias, namespace },
    spec: {
      keyAlias: alias,
      maxBudget: '1',
      budgetDuration: '30d',
      connectionRef: { instanceRef: { name: 'sample', namespace: 'default' } },
      ...spec,
    },
  });
  const workingValue = async (alias: string, namespace = 'default') => {
    const condition = await eventually(
      () => ok('get', 'vk', alias, '-n', namespace, '-o', KEY_VALUE),
      (text) => text.startsWith('true sk-'),
    );
    return condition.slice('true '.length);
  };
  const call = async (apiKey: string, model?: string) => answerTo(await stack().client(apiKey), model);
  const refused = (value: string) =>
    eventually(
      () => call(value),
      (answer) => answer.startsWith('401'),
      8_000,
    );
  const isDeleted = (...words: string[]) =>
    eventually(
      () => stack().kubectl(['get', ...words]),
      ({ stderr }) => stderr.includes('NotFound'),
      COLLECTED / 2,
    );

  test('a key whose finalizer was removed by hand stops working after a resync all the same', async () => {
    await apply(key('byhand'));
    const value = await workingValue('byhand');
    await ok('patch', 'vk', 'byhand', '--type=merge', '-p', '{"metadata":{"finalizers":[]}}');
    await ok('delete', 'vk', 'byhand', '--wait=false');
    await isDeleted('vk', 'byhand');
    await refused(value);
  });

  test('a namespace is deleted with its keys, and nothing is created in it again', async () => {
    await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'going' } }, key('inside', 'going'));
    const value = await workingValue('inside', 'going');
    await ok('delete', 'namespace', 'going', '--wait=false');
    await isDeleted('namespace', 'going');
    await refused(value);
  });

  test('a key whose Secret is gone is deleted immediately', async () => {
    await apply(key('orphan'));
    await workingValue('orphan');
    await ok('delete', 'secret', 'orphan-key');
    await ok('delete', 'vk', 'orphan', '--wait=false');
    await isDeleted('vk', 'orphan');
  });

  test('a foreground deletion of a key deletes its Secret first, then the key; the key stops working', async () => {
    await apply(key('foreground'));
    const value = await workingValue('foreground');
    expect(await call(value)).toBe('200');
    await ok('delete', 'vk', 'foreground', '--cascade=foreground', '--wait=false');
    await isDeleted('vk', 'foreground');
    await isDeleted('secret', 'foreground-key');
    await refused(value);
  });

  test('a foreground deletion of a retained key leaves its Secret, and the key still works', async () => {
    await apply(key('kept', 'default', { deletionPolicy: 'Retain' }));
    const value = await workingValue('kept');
    await ok('delete', 'vk', 'kept', '--cascade=foreground', '--wait=false');
    await isDeleted('vk', 'kept');
    expect(await ok('get', 'secret', 'kept-key', '-o', 'name')).toContain('kept-key');
    expect(await call(value)).toBe('200');
    await ok('delete', 'secret', 'kept-key');
    await refused(value);
  });

  test(
    'an instance is deleted in the foreground with keys left; they stop working within seconds and say why, and calls in flight end or are cut, and pay',
    async () => {
      const added = { op: 'add', path: '/spec/models/-', value: slowModel(stack().endpoints) };
      await ok('patch', 'gwi', 'sample', '--type=json', '-p', JSON.stringify([added]));
      await apply(key('left'));
      const value = await workingValue('left');
      const client = await stack().client(value);
      await eventually(
        async () => JSON.stringify(await client.models.list()),
        (models) => models.includes('"slow"'),
      );
      const short = call(value, 'slow');
      // Nearly half a minute.
      const messages = [{ role: 'user' as const, content: 'word '.repeat(120) }];
      const long = client.chat.completions.create({ model: 'slow', messages }).then(String, String);
      const stream = (
        await client.chat.completions.create({ model: 'slow', messages, stream: true })
      ).toReadableStream();
      const streamed = new Response(stream).text().then(String, String);
      await eventually(
        async () => (await fetch(`${stack().endpoints.upstream}/stats`)).text(),
        (stats) => stats.includes('"slow":{"requests":3,'),
      );
      await ok('delete', 'gwi', 'sample', '--cascade=foreground', '--wait=false');
      await isDeleted('gwi', 'sample');
      expect(await short).toBe('200');
      // Cut, where the cluster deletes quickly.
      await Promise.all([long, streamed]);
      await eventually(
        () => ledgerRowsFor(stack().endpoints.database, 'slow'),
        (count) => count === 3,
      );
      await eventually(
        () => call(value),
        (answer) => /^40[14]/.test(answer),
        8_000,
      );
      const condition = await eventually(
        () =>
          ok('get', 'vk', 'left', '-o', 'jsonpath={.status.isActive} {.status.conditions[?(@.type=="Ready")].reason}'),
        (text) => text === 'false InstanceNotFound',
      );
      expect(condition).toBe('false InstanceNotFound');
      await ok('delete', 'vk', 'left', '--wait=false');
      await isDeleted('vk', 'left');
    },
    COLLECTED,
  );
}
