import { expect, test } from 'vitest';
import { entry, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { MESSAGES, SSE } from '../../../test/gateway/upstream.ts';

const MEBIBYTE = new Uint8Array(1024 * 1024).fill(0x20);

/** Many answers with all their log probabilities, say. */
async function* endless(): AsyncGenerator<Uint8Array> {
  while (true) yield MEBIBYTE;
}

test('a reply that is longer than the gateway keeps is charged all the same, asked for once, and not held against its entry', async () => {
  const { chat, ledger, fake, lines, counted } = stage({ script: () => ({ body: endless() }) });
  for (const time of [1, 2, 3]) {
    const response = await chat({ model: 'gpt', messages: MESSAGES, n: 8, logprobs: true, top_logprobs: 20 });
    expect([response.status, fake.requests.length]).toEqual([502, time]);
  }
  const whole = { estimated: true, tokens: { output: 8 * 16_384 } };
  expect(ledger.settled).toMatchObject([whole, whole, whole]);
  expect([ledger.held(), ledger.released.length, lines.length]).toEqual([0, 0, 3]);
  expect(counted.some(([name]) => name === 'gateway_operator_cooldowns_total')).toBe(false);
});

test('plain replies at the same time are no more than the process can keep: one that finds no room is charged', async () => {
  let go = () => {};
  const wait = new Promise<void>((resolve) => {
    go = resolve;
  });
  async function* long(): AsyncGenerator<Uint8Array> {
    for (let piece = 0; piece < 2; piece += 1) yield MEBIBYTE;
    await wait;
    throw new Error('the provider left');
  }
  const snapshot = snapshotOf([entry('gpt')], { retries: 0 });
  // Room for 10 MiB of one key. A reply counts twice until it is whole.
  const memory = { limit: 64 * 1024 * 1024, own: 0 };
  const { chat, ledger, fake } = stage({ snapshot, script: () => ({ body: long() }), deps: { memory } });
  const ask = () => chat({ model: 'gpt', messages: MESSAGES, max_tokens: 5 });
  const others = [ask(), ask()];
  await expect.poll(() => fake.requests.length).toBe(2);
  await settleDown();
  expect([(await ask()).status, ledger.settled]).toMatchObject([503, [{ estimated: true, tokens: { output: 5 } }]]);
  go();
  await Promise.all(others);
});

test('an attempt that ends in an error lets its upstream go: a stream whose first event never ends keeps no connection', async () => {
  const megabyte = new Uint8Array(1024 * 1024).fill(0x78);
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield megabyte;
  }
  const { chat, fake } = stage({ script: () => ({ headers: SSE, body: endless() }) });
  const response = chat({ model: 'gpt', messages: MESSAGES, max_tokens: 5, stream: true });
  expect((await response).status).toBe(502);
  expect(fake.requests.map(({ signal }) => signal.aborted)).toEqual([true]);
});
