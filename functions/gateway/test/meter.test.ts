import { expect, test } from 'vitest';
import { memory } from '../../../test/gateway/memory.ts';
import { chunk } from '../../../test/gateway/upstream.ts';
import type { ChargedCall } from '../spend/charge.ts';
import { Meter } from '../spend/meter.ts';
import { openai } from '../wire/chat/openai.ts';

/** One word in a provider's packet of some 250 bytes, which has its own memory. */
const WORD = new TextEncoder().encode(chunk({ content: ' word' }, { system_fingerprint: 'x'.repeat(80) }));

/** A stream that has passed this number of words on, and that continues. */
function streaming(words: number): Meter {
  const end = { record: () => {}, toFailureEvent: () => WORD, toErrorEvent: () => WORD, toCutEvents: () => [] };
  // The meter reads them when it settles or cuts.
  const meter = new Meter({ target: { limit: {} } } as ChargedCall, end);
  const reader = openai.streams?.createReader({ created: 0, redact: (text) => text });
  for (let at = 0; at < words; at += 1) for (const piece of reader?.push(WORD.slice()) ?? []) meter.count(piece);
  return meter;
}

/** Bytes that one of many such streams keeps. */
async function kept(words: number): Promise<number> {
  const before = await memory();
  const meters = Array.from({ length: 50 }, () => streaming(words));
  const after = await memory();
  return (after - before) / meters.length;
}

test('a stream keeps at most the unread part of what it has passed on, whatever its packets', async () => {
  await kept(10);
  for (const words of [200, 260, 900, 5_000]) expect(await kept(words)).toBeLessThan(140 * 1024);
});
