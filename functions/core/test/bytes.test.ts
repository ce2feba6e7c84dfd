import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Pieces, readBytes } from '#core/json/bytes.ts';

const bytes = (length: number, first = 0) => Uint8Array.from({ length }, (_, at) => first + at);

describe('pieces', () => {
  test('of any sizes are joined in their order', () => {
    const size = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 20_000 }));
    fc.assert(
      fc.property(fc.array(size, { maxLength: 40 }), (sizes) => {
        const pieces = new Pieces();
        const sent = sizes.map((length, at) => bytes(length, at));
        for (const piece of sent) pieces.add(piece);
        expect(pieces.length).toBe(sizes.reduce((sum, one) => sum + one, 0));
        expect(Buffer.concat(sent).equals(pieces.take())).toBe(true);
        expect([pieces.length, pieces.take().length]).toEqual([0, 0]);
      }),
    );
  });

  test('of which there is one are that one', () => {
    const [pieces, only] = [new Pieces(), bytes(3)];
    pieces.add(only);
    expect(pieces.take()).toBe(only);
  });
});

test('a body is read whole, and no further than its bound', async () => {
  const body = () => new Response('four').body;
  expect(await readBytes(body(), 4)).toEqual(new TextEncoder().encode('four'));
  expect(await readBytes(body(), 3)).toBeUndefined();
  expect(await readBytes(null, 3)).toHaveLength(0);
});
