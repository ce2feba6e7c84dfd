import { describe, expect, test } from 'vitest';
import type { Metrics } from '#core/ports/telemetry.ts';
import { entry, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, type World } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { completion, MESSAGES, SSE, sentText, streamed } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, max_tokens: 5 };
const two = snapshotOf([entry('gpt'), entry('gpt', { identifier: 'second' })]);
/** Metrics, of which one throws when it is counted. */
const throwingAt = (broken: string): Metrics => ({
  add: (name) => {
    if (name === broken) throw new Error('a bug');
  },
  set: () => {},
  observe: () => {},
});

describe('whatever a step throws, no reservation stays:', () => {
  test.each<[string, boolean, NonNullable<World['deps']>, number]>([
    ['before a provider was called', false, { random: () => raise() }, 0],
    ['when it was called', false, { metrics: throwingAt('gateway_operator_upstream_attempts_total') }, 1],
    ['when its reply was settled', false, { metrics: throwingAt('gateway_operator_tokens_total') }, 1],
    ['when its stream was settled', true, { metrics: throwingAt('gateway_operator_tokens_total') }, 1],
  ])('%s', async (_, stream, deps, settled) => {
    const script = () => (stream ? { headers: SSE, body: streamed(['x']) } : { body: completion('x') });
    const { chat, ledger, lines } = stage({ snapshot: two, script, deps });
    const response = await chat({ ...CHAT, stream });
    await response.text().catch(() => {});
    await settleDown();
    if (!stream) expect(response.status).toBe(500);
    expect([ledger.liveReservations(), ledger.settled.length]).toEqual([0, settled]);
    expect(lines).toContainEqual(expect.objectContaining({ level: 'error' }));
  });
});

test('an entry at which a step threw is not busy afterwards', async () => {
  const snapshot = snapshotOf([entry('gpt'), entry('gpt', { identifier: 'second', model: 'other' })], {
    strategy: 'LeastBusy',
  });
  let calls = 0;
  const metrics: Metrics = {
    ...throwingAt(''),
    add: (name) => {
      calls += name === 'gateway_operator_upstream_attempts_total' ? 1 : 0;
      if (calls === 1) throw new Error('a bug');
    },
  };
  const script = () => ({ headers: SSE, body: streamed(['x']) });
  const { chat, fake } = stage({ snapshot, script, deps: { metrics } });
  for (let request = 0; request < 2; request += 1) await (await chat({ ...CHAT, stream: true })).text();
  const [first, second] = fake.requests.map((request) => JSON.parse(sentText(request)).model);
  expect(second).toBe(first);
});

function raise(): never {
  throw new Error('a bug');
}
