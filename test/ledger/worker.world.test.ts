// A Worker and a process that share a counter store.
import { request } from 'node:http';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { parseMoney } from '#core/money/money.ts';
import { eventually } from '../support/eventually.ts';
import { whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { type Harness, type Key, PRICE, startHarness } from './chaos/harness.ts';
import { ask, type ClientReply } from './chaos/load.ts';
import { startWorker } from './chaos/worker.ts';

const missing = whyNoRedis();
/** A lease lasts twenty seconds. */
const LEASE_HAS_ENDED = 60_000;
/** The reservation for a reply: forty tokens. */
const REPLY = 40n * PRICE.output;

describeUnless(missing, 'a Worker and a process that share a store', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await startHarness(1, [10n ** 15n, 3_000_000n], { store: 'upstash' });
  });
  afterAll(() => harness?.stop());

  const keyAt = (at: number): Key => harness.keys[at] ?? expect.fail('there is no key');
  const ledgerRowsOf = async ({ scopeId }: Key) =>
    (
      await harness.postgres.query<{ kind: string; cost: string }>(
        harness.connection,
        `select kind, cost::text as cost from gateway_operator.ledger_row r
          join gateway_operator.ledger_set s on s.id = r.set_id where '${scopeId}' = any(scope_ids)`,
      )
    ).map(({ kind, cost }) => ({ kind, cost: BigInt(cost) }));
  const spendBy = async (url: string, { value }: Key): Promise<bigint | undefined> => {
    const answer = await fetch(`${url}/key`, { headers: { authorization: `Bearer ${value}` } });
    return parseMoney(((await answer.json()) as { currentSpend: string }).currentSpend);
  };

  test('a Worker that is killed between reply and settlement is charged the size of its reservation when its lease has ended, once, without a resync', async () => {
    const key = keyAt(0);
    const worker = await startWorker(harness);
    let again = (): void => undefined;
    const text = await streamFrom(worker.url, key, () => {
      again = harness.upstash.lose();
    });
    expect(text).toContain('data: [DONE]');
    await worker.stop();
    again();
    expect(await ledgerRowsOf(key)).toEqual([]);

    const [row, ...more] = await eventually(
      () => ledgerRowsOf(key),
      (rows) => rows.length > 0,
      LEASE_HAS_ENDED,
    );
    expect(more).toEqual([]);
    expect(row?.kind).toBe('expired');
    // The prompt, and the longest possible reply.
    const cost = row?.cost ?? 0n;
    expect(cost).toBeGreaterThan(REPLY);
    expect(cost).toBeLessThan(REPLY + 200n * PRICE.input);
    expect(await spendBy(harness.gateways[0]?.url ?? '', key)).toBe(cost);
  });

  test('a new Worker answers 503 while database or store hang, and works without help afterwards', async () => {
    const key = keyAt(0);
    const worker = await startWorker(harness);
    onTestFinished(() => worker.stop());
    for (const part of [harness.postgres, harness.redis]) {
      const thaw = part.freeze();
      const answer = await ask(worker.url, key, false).finally(thaw);
      expect([answer.status, answer.code]).toEqual([503, 'ledger_unavailable']);
    }
    await eventually(
      () => ask(worker.url, key, false),
      ({ completed }) => completed !== undefined,
    );
  });

  test('on the last cent they admit no more than the budget, and refuse no request without cause', async () => {
    const key = keyAt(1);
    const worker = await startWorker(harness);
    onTestFinished(() => worker.stop());
    // On a busy machine, concurrent first requests of a Worker may get 503.
    await eventually(
      () => ask(worker.url, keyAt(0), false),
      ({ completed }) => completed !== undefined,
    );
    const urls = [worker.url, harness.gateways[0]?.url ?? ''];
    const rush = (requests: number): Promise<ClientReply[]> =>
      Promise.all(Array.from({ length: requests }, (_, at) => ask(urls[at % 2] ?? '', key, at % 4 < 2)));
    const seen: ClientReply[] = [];
    // Rounds until nothing is left: each one uses what earlier reservations gave back.
    for (let round = 0; round < 20; round += 1) {
      const answers = await rush(40);
      seen.push(...answers);
      if (answers.every(({ code }) => code === 'budget_exceeded')) break;
    }
    const outcomes = seen.map(({ status, code }) => `${status} ${code ?? ''}`.trim());
    // On a busy machine the store may miss its deadline for some of forty: they are refused, free.
    const EXPECTED = /^(200|429 budget_(held|exceeded)|503 ledger_unavailable)$/;
    expect([...new Set(outcomes)].filter((one) => !EXPECTED.test(one))).toEqual([]);
    expect(outcomes.slice(-40)).toEqual(Array.from({ length: 40 }, () => '429 budget_exceeded'));

    const completed = seen.filter(({ completed }) => completed !== undefined);
    const owed = completed.reduce((all, { completed }) => all + costOf(harness, completed), 0n);
    const rows = await eventually(
      () => ledgerRowsOf(key),
      (all) => all.length === completed.length,
    );
    const spent = rows.reduce((all, { cost }) => all + cost, 0n);
    expect(spent).toBe(owed);
    expect(spent).toBeLessThanOrEqual(key.limit);
    // The rest is less than a prompt and a token.
    expect(key.limit - spent).toBeLessThan(200n * PRICE.input + PRICE.output);
    expect(await Promise.all(urls.map((url) => spendBy(url, key)))).toEqual([spent, spent]);
  });
});

function costOf({ upstream }: Harness, id = ''): bigint {
  const { input = 0, output = 0 } = upstream.reported.get(id) ?? {};
  return BigInt(input) * PRICE.input + BigInt(output) * PRICE.output;
}

/** Reads the whole stream; `onFirst` is called at its first bytes. */
function streamFrom(url: string, { value }: Key, onFirst: () => void): Promise<string> {
  const messages = [{ role: 'user', content: 'Say words.' }];
  const body = JSON.stringify({ model: 'fault', messages, max_tokens: 40, stream: true });
  const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/chat/completions`, { method: 'POST', headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.once('data', onFirst);
      response.on('data', (chunk) => {
        text += chunk;
        if (text.includes('data: [DONE]')) resolve(text);
      });
      response.on('close', () => resolve(text));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
