import { describe, expect, test } from 'vitest';
import { entry, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { chunk, MESSAGES, type Script, SSE } from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, stream: true };
const script: Script = () => ({
  headers: SSE,
  body: stuckAfter(chunk({ content: 'one ' }), chunk({ content: 'two ' })),
});

async function* stuckAfter(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield new TextEncoder().encode(text);
  await new Promise(() => {});
}

describe.each([undefined, 1, 100])('a stream whose reservation may be lost (room for %s)', (room) => {
  test('ends as at its reservation, its upstream is stopped, and the streamed part is charged', async () => {
    const { chat, ledger, fake, lines } = stage({ script, room });
    const text = (await chat(CHAT)).text();
    await settleDown();
    ledger.lose();
    expect(await text).toMatch(/one .*two .*"finish_reason":"length".*\n\ndata: \[DONE\]\n\n$/s);
    expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 3 } }]);
    expect(lines[0]?.fields).toMatchObject({ status: 200, end: 'cut' });
    expect([fake.requests[0]?.signal.aborted, ledger.liveReservations()]).toEqual([true, 0]);
  });

  test('continues if it costs nothing', async () => {
    const client = new AbortController();
    const snapshot = snapshotOf([entry('gpt', { price: { input: '0', output: '0' } })]);
    const { chat, ledger, fake } = stage({ script, room, snapshot });
    const response = await chat(CHAT, { signal: client.signal });
    await settleDown();
    ledger.lose();
    await settleDown();
    expect([fake.requests[0]?.signal.aborted, ledger.liveReservations()]).toEqual([false, 1]);
    client.abort();
    await response.body?.cancel().catch(() => {});
  });
});
