import { expect, test } from 'vitest';
import { joinBody, lengthOf, piecesOf, toBytes } from '../body.ts';

const bytes = (length: number, of = 7) => new Uint8Array(length).fill(of);

test.each<[string, ReadonlyArray<Uint8Array | string>, ReadonlyArray<number>]>([
  ['nothing', [], []],
  ['a text', ['ünï'], [5]],
  ['texts alone', ['a', 'é', 'b'], [4]],
  ['long bytes', [bytes(150_000)], [65_536, 65_536, 18_928]],
  ['bytes with texts between them', [bytes(100), '"é"', bytes(70_000), 'x', bytes(5), '}'], [65_640, 4_464, 7]],
  ['very many short parts', Array.from({ length: 50_000 }, () => bytes(3)), [65_538, 65_538, 18_924]],
])('a body of %s is the same joined or in pieces', (_, parts, lengths) => {
  const pieces = [...piecesOf(parts)];
  expect(pieces.map(({ length }) => length)).toEqual(lengths);
  const joined = Buffer.concat(pieces);
  expect([joined.equals(joinBody(parts)), joined.equals(toBytes(parts)), joined.length]).toEqual([
    true,
    true,
    lengthOf(parts),
  ]);
});

test('pieces of long bytes are not copied, and no piece is kept after it was taken', () => {
  const long = bytes(200_000);
  const parts = [long];
  const pieces = piecesOf(parts);
  const first = pieces.next().value;
  expect([first?.buffer === long.buffer, parts.length]).toEqual([true, 1]);
});
