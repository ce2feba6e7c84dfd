import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { UpstreamError } from '#core/ports/upstream.ts';
import { chunkFrame, exceptionFrame, frame, frameOf } from '../../../../test/gateway/aws-event-stream.ts';
import { runs } from '../../../../test/support/runs.ts';
import { toSse } from '../../wire/streams/aws-event-stream.ts';
import { dataOf, SseSplitter } from '../../wire/streams/sse.ts';

async function textOf(bytes: Uint8Array, size = bytes.length): Promise<string> {
  async function* packets() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const texts: string[] = [];
  for await (const piece of toSse(packets())) texts.push(new TextDecoder().decode(piece));
  return texts.join('');
}

test('the checksums of an example of AWS are right', async () => {
  const example =
    '0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1';
  expect(await textOf(Buffer.from(example, 'hex'))).toBe(': \n\n');
});

test('events become those of Anthropic, whatever the packets', async () => {
  const events = fc.array(
    fc.record({ type: fc.constantFrom('ping', 'content_block_delta'), delta: fc.string({ unit: 'grapheme' }) }),
  );
  await fc.assert(
    fc.asyncProperty(events, fc.integer({ min: 1, max: 50 }), async (sent, size) => {
      const text = await textOf(Buffer.concat(sent.map(chunkFrame)), size);
      expect(text).toBe(sent.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
    }),
    { numRuns: runs(200) },
  );
});

test('a long message in small packets is joined once', async () => {
  const delta = 'x'.repeat(2_000_000);
  const text = await textOf(chunkFrame({ type: 'content_block_delta', delta }), 256);
  expect(text.length).toBe(
    `event: content_block_delta\ndata: ${JSON.stringify({ type: 'content_block_delta', delta })}\n\n`.length,
  );
});

test('a wrong byte never becomes another event', async () => {
  const whole = chunkFrame({ type: 'message_delta', usage: { output_tokens: 5 } });
  const before = await textOf(whole);
  for (let at = 0; at < whole.length; at += 1) {
    const broken = Uint8Array.from(whole, (byte, index) => (index === at ? byte ^ 0x10 : byte));
    // A wrong length never has a right checksum; a length that waits for more bytes gives no events.
    const text = await textOf(broken).catch(() => '');
    expect(text, `${before} with byte ${at} changed`).toBe('');
  }
});

test.each([
  ['throttlingException', 'rate_limit_error'],
  ['validationException', 'invalid_request_error'],
  ['modelTimeoutException', 'timeout_error'],
  ['internalServerException', 'api_error'],
])('%s in a stream is an error of the type %s', async (exception, type) => {
  const [event] = new SseSplitter().push(Buffer.from(await textOf(exceptionFrame(exception, 'No.'))));
  expect(JSON.parse(dataOf(event ?? new Uint8Array(0)) ?? '')).toEqual({
    type: 'error',
    error: { type, message: 'No.' },
  });
});

test('headers of all types are skipped', async () => {
  const text = await textOf(frame({ ':error-code': 'x', ':error-message': 'why' }, ''));
  expect(text).toContain('"message":"why"');
});

test('a frame whose bytes are no base64 is broken, and no error of our own', async () => {
  await expect(textOf(frame({ ':event-type': 'chunk' }, '{"bytes":"%%%%"}'))).rejects.toThrow(UpstreamError);
});

test('a frame whose headers end too early is broken, and no error of our own', async () => {
  const whole = frame({ ':event-type': 'chunk' }, '{}');
  const headers = Buffer.from(whole.subarray(12, 12 + 10));
  // The header of `frame` without its last bytes, in a frame with right checksums.
  await expect(textOf(frameOf(headers, '{}'))).rejects.toThrow(UpstreamError);
});

test('the event in a frame has a maximum number of values', async () => {
  const event = JSON.stringify({ type: 'x', y: Array.from({ length: 600_000 }, () => ({})) });
  const bytes = Buffer.from(event).toString('base64');
  const sent = frame({ ':event-type': 'chunk' }, JSON.stringify({ bytes }));
  await expect(textOf(sent)).rejects.toThrow('has too many values');
});
