import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { normalizedGrowthOf, tokensPerByte } from '../../wire/prompt/letters.ts';

const encoder = new TextEncoder();
const bytesOf = (text: string) => encoder.encode(text).length;
const growthOf = (text: string) => {
  const bytes = encoder.encode(text);
  return normalizedGrowthOf({ text, bytes, isAscii: bytes.length === text.length });
};

describe('a text that is normalized', () => {
  test('has no more bytes than are counted, whatever its letters', () => {
    const grown: string[] = [];
    for (let point = 0x80; point < 0x110000; point += 1) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const text = String.fromCodePoint(point).repeat(2);
      const growth = bytesOf(text.normalize('NFKC')) - bytesOf(text);
      if (growth > 0) grown.push(text);
      if (growth > growthOf(text)) expect(`${point.toString(16)}: ${growthOf(text)}`).toBe(growth);
    }
    expect(grown.length).toBeGreaterThan(500);
  });

  test.each([
    ['plain', 'a "word" \\u00e9 \\n', 0],
    ['letters with accents', 'Äußerst schön, naïve façade', 0],
    ['Chinese, Japanese and Korean', '中文かなカナ한글', 0],
    ['a word in one letter', '\ufdfa', 30],
    ['the same, escaped', '\\ufdfa\\uFDFA', 54],
    ['an escape that is none', '\\uzz', 0],
    ['escapes that are none before one', '\\ufdf\\u\\ufdfa', 27],
    ['an escape in JSON in JSON', '\\\\ufdfa\\\\u', 27],
    ['an ellipsis', '…', 0],
  ])('counts its growth: %s', (_, text, growth) => {
    expect(growthOf(text)).toBe(growth);
  });
});

/** 3,008 bytes that look random, the same ones in each run. */
const SPREAD = Buffer.concat(Array.from({ length: 94 }, (_, at) => hash('sha256', `${at}`, 'buffer')));

describe('tokens for each byte of a text', () => {
  const known = () => new Uint8Array([77]);
  const density = (text: string) => tokensPerByte(text, known);

  test.each([
    ['prose', 'the quick brown fox jumps over the lazy dog ', 0.33, 0.34],
    ['Russian', 'съешь же ещё этих мягких французских булок ', 0.33, 0.34],
    ['Chinese', '我能吞下玻璃而不伤身体。', 0.33, 0.34],
    ['code', 'const sum = (a: number, b: number) => a + b;\\n', 0.33, 0.34],
    ['base64', SPREAD.toString('base64'), 0.53, 0.65],
    ['digests', SPREAD.toString('hex'), 0.5, 0.6],
    ['signs of Tibet', 'ༀ༁༂༃༄༅༆༇', 1, 1],
    ['squared words', '㏂㏂㏂', 1, 1],
    ['faces', '😀🫠🦄', 1, 1],
    ['nothing', '', 0.33, 0.34],
  ])('are about those of its letters: %s', (_, text, min, max) => {
    for (const times of [1, 5, 3000]) {
      expect(density(text.repeat(times))).toBeGreaterThanOrEqual(min);
      expect(density(text.repeat(times))).toBeLessThanOrEqual(max);
    }
  });

  test('of a long text cannot hide between the samples', () => {
    const step = 10_000;
    const places = Array.from({ length: 64 }, () => '\u0f00'.repeat(step - 32) + 'a'.repeat(32));
    const found = Array.from({ length: 64 }, (_, at) => tokensPerByte(places.join(''), () => new Uint8Array([at * 4])));
    expect(found.reduce((sum, one) => sum + one, 0) / found.length).toBeGreaterThan(0.9);
  });
});
