// Does the money add up through the whole gateway: the real ledger, a real server, an upstream that counts for itself?

import { afterEach, expect, test } from 'vitest';
import { createLedger } from '../../../../../functions/core/ledger/ledger.ts';
import { parseMoney } from '../../../../../functions/core/money/money.ts';
import { costOf, toPrice } from '../../../../../functions/core/money/price.ts';
import { createGateway } from '../../../../../functions/gateway/app.ts';
import { createMemoryEpochs } from '../../../../../test/doubles/epochs.ts';
import { createMemoryLedgerDatabase } from '../../../../../test/doubles/ledger-database.ts';
import { createMemoryLedgerRows } from '../../../../../test/doubles/ledger-rows.ts';
import { policiesOf } from '../../../../../test/doubles/policies.ts';
import { entry, KEY, keyRecord, scope, snapshotOf } from '../../../../../test/gateway/instance.ts';
import { silentLog } from '../../../../../test/support/silent-log.ts';
import { createMemoryCounterStore } from '../../../../adapters/memory/counter-store.ts';
import { createMemoryJournal } from '../../../../adapters/memory/journal.ts';
import { createUpstream } from '../../../../adapters/upstream/undici.ts';
import { nodeDependencies } from '../../../../runtime/node/platform.ts';
import { serve } from '../../../../runtime/node/serve.ts';
import { createSampleUpstream } from '../../sample-upstream/server.ts';

const PRICE = { input: '15', output: '60' };
const cleanUp: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function open(limit: string, teamLimit: string) {
  const sample = await createSampleUpstream({ port: 0 });
  const upstream = createUpstream();
  const node = nodeDependencies();
  const metrics = { add: () => {}, set: () => {}, observe: () => {}, render: () => '' };
  const ledgerRows = createMemoryLedgerRows();
  const deps = { ...node, log: silentLog, metrics };
  const epochs = createMemoryEpochs(node);
  const ledger = createLedger({
    ...deps,
    instanceUid: 'uid',
    epochs,
    journal: createMemoryJournal(),
    counterStore: createMemoryCounterStore({ clock: node.clock, epoch: 0 }),
    database: {
      ...createMemoryLedgerDatabase({ epochs, ledgerRows }),
      scopesOfOtherInstances: ledgerRows.scopesOfOtherInstances,
    },
  });
  await ledger.start();
  const models = ['echo', 'error-500', 'cut', 'no-usage', 'chatterbox'].map((model) =>
    entry(model, { model, price: PRICE, apiBase: `${sample.url}/v1`, credentials: {} }),
  );
  const anchor = Date.now();
  const team = scope('team', {
    anchor,
    budget: { limit: String(parseMoney(teamLimit)), duration: '1d', alignment: 'Rolling' },
  });
  const record = keyRecord({ limit, anchor }, [team]);
  const snapshot = snapshotOf(models, { retries: 0 });
  const handle = createGateway({
    ...deps,
    ledger,
    upstream,
    snapshots: { current: () => snapshot },
    credentials: { read: () => undefined },
    policies: policiesOf(() => record),
  });
  const served = await serve({ handle, port: 0, host: '127.0.0.1' });
  cleanUp.push(
    sample.close,
    upstream.close,
    () => ledger.close(),
    () => served.close(0),
  );
  const ask = (body: object, signal?: AbortSignal) =>
    fetch(`${served.url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}` },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'one two three four' }], ...body }),
      ...(signal === undefined ? {} : { signal }),
    });
  return { sample, ledgerRows, ledger, ask };
}

const sum = (costs: ReadonlyArray<bigint>) => costs.reduce((total, cost) => total + cost, 0n);

test('a crowd never spends more than the limit, and what is booked is what the upstream counted', async () => {
  // About thirty replies, while a reservation is the size of ten.
  const { sample, ledgerRows, ledger, ask } = await open('0.015', '100');
  const statuses = await Promise.all(
    [...Array(100).keys()].map(async () => {
      const response = await ask({ model: 'echo', max_tokens: 4 });
      const body = await response.json();
      return response.status === 200 ? 200 : Reflect.get(Object(body), 'error').code;
    }),
  );
  await ledger.flush();
  const costs = ledgerRows.all().map(({ cost }) => cost);
  expect(new Set(statuses)).toEqual(
    new Set([200, 'budget_exceeded', 'budget_held'].filter((one) => statuses.includes(one))),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(costs.length);
  expect(costs.length).toBeGreaterThan(0);
  expect(sum(costs)).toBeLessThanOrEqual(15_000_000n);
  const { promptTokens = 0, completionTokens = 0 } = sample.stats.read().models.echo ?? {};
  const price = toPrice(PRICE);
  const tokens = { input: promptTokens, output: completionTokens, cachedInput: 0, cacheWrite: 0 };
  expect(sum(costs)).toBe(price === undefined ? undefined : costOf(tokens, price));
});

test('whatever goes wrong, nothing stays held, every scope is charged the same, and the next request can spend', async () => {
  const { ledgerRows, ledger, ask } = await open('1', '1');
  const kinds = ['echo', 'error-500', 'cut', 'no-usage', 'chatterbox'].flatMap((model) => [
    { model, max_tokens: 20, stream: true },
    { model, max_tokens: 20, stream: false },
  ]);
  await Promise.all(
    kinds.flatMap((body) =>
      [0, 1, 2].map(async (leaves) => {
        const client = new AbortController();
        try {
          const response = await ask(body, client.signal);
          if (leaves > 0) {
            await response.body?.getReader().read();
            client.abort();
          } else await response.text();
        } catch {
          // It left, or the stream broke: what matters is what was booked.
        }
      }),
    ),
  );
  const hasNoReservation = async () => {
    await ledger.flush();
    return (await ask({ model: 'echo', max_tokens: 15_000 })).status;
  };
  await expect.poll(hasNoReservation).toBe(200);
  await ledger.flush();
  const entries = ledgerRows.all();
  expect(entries.every(({ cost, scopeWindows }) => cost > 0n && scopeWindows.length === 2)).toBe(true);
  const spent = await ledgerRows.sums(entries[0]?.scopeWindows ?? []);
  expect(spent.map((one) => one.spent)).toEqual([
    sum(entries.map(({ cost }) => cost)),
    sum(entries.map(({ cost }) => cost)),
  ]);
});
