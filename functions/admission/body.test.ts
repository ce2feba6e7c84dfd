// Is a body read up to the limit and no further, whatever its header promises?
import { expect, test } from 'vitest';
import { readBody } from './body.ts';

const request = (body: string, promised?: number) =>
  new Request('http://x/', {
    method: 'POST',
    body,
    headers: promised === undefined ? {} : { 'content-length': String(promised) },
  });
const read = async (body: string, promised?: number) => {
  const bytes = await readBody(request(body, promised), 10);
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
};

test.each([
  ['nothing', '', undefined, ''],
  ['as much as is allowed', '0123456789', undefined, '0123456789'],
  ['one too many', '0123456789x', undefined, undefined],
  ['a true promise', '0123456789', 10, '0123456789'],
  ['a promise of too much', 'a', 11, undefined],
  ['a promise of less than comes', '0123456789x', 3, undefined],
  ['letters of several bytes', 'äöüäö', undefined, 'äöüäö'],
  ['too many of them', 'äöüäöü', undefined, undefined],
])('%s', async (_, body, promised, expected) => expect(await read(body, promised)).toBe(expected));
