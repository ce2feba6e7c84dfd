// What do streams look like to a client that did not ask for usage, and what are they charged? `golden/*.upstream.txt` in, `*.client.golden.txt` out.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { entry, snapshotOf } from '../../test/gateway/instance.ts';
import { stage } from '../../test/gateway/stage.ts';
import { MESSAGES, SSE } from '../../test/gateway/upstream.ts';

const folder = join(import.meta.dirname, 'golden');

test.each(globSync('*.upstream.txt', { cwd: folder }).sort())(
  'a stream like %s is understood, however it is cut',
  async (file) => {
    const bytes = readFileSync(join(folder, file));
    const play = createPlay(file.startsWith('anthropic') ? 'anthropic' : 'openai');
    const whole = await play([bytes]);
    await expect(whole).toMatchFileSnapshot(join(folder, file.replace('.upstream.', '.client.golden.')));
    for (const size of [1, 7, 100]) {
      const packets = [...Array(Math.ceil(bytes.length / size)).keys()].map((at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      expect(await play(packets)).toBe(whole);
    }
  },
);

function createPlay(provider: string) {
  return async function play(packets: ReadonlyArray<Uint8Array>): Promise<string> {
    const snapshot = snapshotOf([entry('gpt', { provider })]);
    const { chat, ledger } = stage({ snapshot, script: () => ({ headers: SSE, body: packets }) });
    const text = await (await chat({ model: 'gpt', messages: MESSAGES, stream: true })).text();
    const [settled] = ledger.settled;
    const { cost, tokens, estimated } = settled ?? {};
    const charged = JSON.stringify({ cost: String(cost), tokens, estimated });
    return `${text}\n--- charged: ${charged}\n`;
  };
}
