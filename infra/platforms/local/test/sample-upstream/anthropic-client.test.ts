// Does the unmodified OpenAI client put Anthropic's streams together: texts, reasoning, several tool calls at the same
// time?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { entry, KEY, snapshotOf } from '../../../../../test/gateway/instance.ts';
import { stage } from '../../../../../test/gateway/stage.ts';
import { SSE } from '../../../../../test/gateway/upstream.ts';

const golden = join(import.meta.dirname, '../../../../../functions/gateway/test/golden');

/** What the client has when a recorded stream has ended, with its usage. */
async function finalOf(recorded: string) {
  const body = readFileSync(join(golden, `${recorded}.upstream.txt`), 'utf8');
  const { app } = stage({
    snapshot: snapshotOf([entry('claude', { provider: 'anthropic' })]),
    script: () => ({ headers: SSE, body }),
  });
  const client = new OpenAI({
    apiKey: KEY,
    baseURL: 'http://gateway/v1',
    maxRetries: 0,
    fetch: async (url, init) => app.request(String(url), init),
  });
  const stream = client.chat.completions.stream({
    model: 'claude',
    messages: [{ role: 'user', content: 'Weather in Ulm, and what time is it?' }],
    stream_options: { include_usage: true },
  });
  const completion = await stream.finalChatCompletion();
  return { choice: completion.choices[0], usage: await stream.totalUsage(), id: completion.id };
}

test('a text comes whole, with its usage', async () => {
  expect(await finalOf('anthropic')).toMatchObject({
    id: 'msg_01',
    choice: { finish_reason: 'stop', message: { role: 'assistant', content: 'Grüß dich 👋' } },
    usage: { prompt_tokens: 12, completion_tokens: 4, total_tokens: 16 },
  });
});

test('tool calls come each with its own name and arguments, also those that take none', async () => {
  const { choice } = await finalOf('anthropic-tool-calls');
  expect(choice?.finish_reason).toBe('tool_calls');
  expect(choice?.message.content).toBe('Let me look.');
  expect(choice?.message.tool_calls).toMatchObject([
    { id: 'toolu_1', type: 'function', function: { name: 'weather', arguments: '{"city": "Ulm"}' } },
    { id: 'toolu_2', type: 'function', function: { name: 'now', arguments: '{}' } },
  ]);
});

test('reasoning is beside the answer, not in it', async () => {
  const { choice } = await finalOf('anthropic-thinking');
  expect(choice?.message).toMatchObject({ content: 'Four.', reasoning_content: 'Two and two' });
});

test('a stream that breaks is an error, never a reply', async () => {
  await expect(finalOf('anthropic-broken')).rejects.toThrow('The provider failed to answer');
});
