import { expect, test } from 'vitest';
import { withoutSecrets } from '../../wire/json/secrets.ts';

const without = (secret: string, words: string) => withoutSecrets(words, { credentials: { apiKey: secret } });

test.each([
  ['sk-secret/1', 'the key sk-secret/1 is wrong', 'the key … is wrong'],
  ['sk-secret/1', String.raw`{"a":"\nsk-secret\/1\n","b":"sk\u002Dsecret/1"}`, String.raw`{"a":"\n…\n","b":"…"}`],
  ['sk-secret/1', String.raw`"{\"a\":\"\\u0073k\\\\u002dsecret\\/1\"}"`, String.raw`"{\"a\":\"…\"}"`],
  ['/key/of/it', String.raw`{"a":"\/key\/of\/it, \u00e4"}`, String.raw`{"a":"…, \u00e4"}`],
  [
    String.raw`back\slash\\es`,
    String.raw`{"a":"back\\slash\\\\es","b":"back\u005Cslash\u005c\u005ces"}`,
    '{"a":"…","b":"…"}',
  ],
  [
    'sk-secret/1',
    String.raw`{"a":"sk-secret\u00","b":"sk-secre\u0074"}`,
    String.raw`{"a":"sk-secret\u00","b":"sk-secre\u0074"}`,
  ],
])('the key %s does not reach a client in %s', (secret, words, clean) => {
  expect(without(secret, words)).toBe(clean);
});

test('texts of any length take time in proportion to it, whatever the key', () => {
  const slashes = '\\'.repeat(200_000);
  expect(without('\\'.repeat(30_000), `${slashes}x`)).toBe(`${'…'.repeat(6)}${slashes.slice(0, 20_000)}x`);
  expect(without('\\u005c\\u005c\\u005c', `${slashes}u005`)).toBe(`${slashes}u005`);
});
