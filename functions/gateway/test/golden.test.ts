// Streams for clients that did not request usage, and their charges: `golden/*.upstream.txt` in, `*.client.golden.txt`
// out.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { entry, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage, textOf } from '../../../test/gateway/stage.ts';
import { MESSAGES, SSE } from '../../../test/gateway/upstream.ts';

const folder = join(import.meta.dirname, 'golden');
const recorded = globSync('*.upstream.txt', { cwd: folder }).sort();
const ofAnthropic = recorded.filter((file) => file.startsWith('anthropic'));
const ofResponses = recorded.filter((file) => file.startsWith('responses'));

const cases = [
  ...ofResponses.map((file) => ({ file, path: '/responses', golden: '.client.golden.' })),
  ...recorded
    .filter((file) => !ofResponses.includes(file))
    .map((file) => ({ file, path: '/chat/completions', golden: '.client.golden.' })),
  ...recorded
    .filter((file) => !ofResponses.includes(file))
    .map((file) => ({ file, path: '/messages', golden: '.messages.golden.' })),
];

test.each(cases)('a stream like $file is read on $path, whatever its packets', async ({ file, path, golden }) => {
  const bytes = readFileSync(join(folder, file));
  const play = createPlay(file.startsWith('anthropic') ? 'anthropic' : 'openai', path);
  const whole = await play([bytes]);
  await expect(whole).toMatchFileSnapshot(join(folder, file.replace('.upstream.', golden)));
  for (const size of [1, 7, 100]) {
    const packets = [...Array(Math.ceil(bytes.length / size)).keys()].map((at) =>
      bytes.subarray(at * size, (at + 1) * size),
    );
    expect(await play(packets)).toBe(whole);
  }
});

const same = [
  ...ofAnthropic.map((file) => ({ file, path: '/messages' })),
  ...ofResponses.map((file) => ({ file, path: '/responses' })),
];

test.each(same)('$file reaches clients of $path byte for byte, up to our own end', async ({ file, path }) => {
  const bytes = readFileSync(join(folder, file));
  const play = createPlay(file.startsWith('anthropic') ? 'anthropic' : 'openai', path);
  const [text = ''] = (await play([bytes])).split('\n--- charged');
  const [shown = ''] = text.split(/event: (?:error|message_stop|response\.failed)\n/);
  expect(bytes.toString()).toContain(shown);
});

function createPlay(provider: string, path: string) {
  return async function play(packets: ReadonlyArray<Uint8Array>): Promise<string> {
    const snapshot = snapshotOf([entry('gpt', { provider })]);
    const { chat, ledger } = stage({ snapshot, script: () => ({ headers: SSE, body: packets }) });
    const asked = path === '/responses' ? { input: 'Say hello.' } : { messages: MESSAGES };
    const text = await textOf(await chat({ model: 'gpt', ...asked, stream: true }, { path }));
    const [settled] = ledger.settled;
    const { cost, tokens, estimated } = settled ?? {};
    const charged = JSON.stringify({ cost: String(cost), tokens, estimated });
    return `${text}\n--- charged: ${charged}\n`;
  };
}
