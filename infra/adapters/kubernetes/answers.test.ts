// Is what is no answer of an API server never taken for one?
import { expect, test } from 'vitest';
import { readAllowed, readOffer, readPage } from './answers.ts';

test('a list of nothing is empty, however it is written, and names its next page', () => {
  expect(readPage('{"metadata":{"continue":"t"},"items":[{"a":1}]}')).toEqual({ items: [{ a: 1 }], next: 't' });
  for (const text of ['{"items":null}', '{"metadata":{},"items":[]}', '{"metadata":{"continue":""},"items":[]}'])
    expect(readPage(text)).toEqual({ items: [], next: '' });
});

test('access is allowed only where the answer says so', () => {
  expect(readAllowed('{"status":{"allowed":true}}')).toBe(true);
  expect(readAllowed('{"status":{"allowed":false,"denied":true}}')).toBe(false);
});

test.each([
  '',
  '<html>',
  'null',
  '[]',
  '1',
  '"x"',
  '{}',
  '{"items":1}',
  '{"items":[1]}',
  '{"status":{"allowed":"true"}}',
])('what a proxy in between says (%s) is no answer', (text) => {
  expect(() => readAllowed(text)).toThrow();
  expect(() => readOffer(text)).toThrow();
  expect(() => readPage(text)).toThrow();
});
