// Does reconcile answer only who has its token, however it is sent?
import { expect, test } from 'vitest';
import { requireToken } from '../token.ts';

const TOKENS = ['the-token-of-today', 'the-token-of-yesterday'];
const asked: string[] = [];
const guarded = requireToken(TOKENS, async (request) => {
  asked.push(`${request.method} ${new URL(request.url).pathname}`);
  return new Response('report');
});
const post = async (headers: Readonly<Record<string, string>>, path = '/') =>
  (await guarded(new Request(`http://reconcile${path}`, { method: 'POST', headers }))).status;

test.each([
  ['a bearer token', { authorization: 'Bearer the-token-of-today' }],
  ['a bearer token, the scheme in any case', { authorization: 'bearer the-token-of-today' }],
  ['the previous one, while one replaces the other', { authorization: 'Bearer the-token-of-yesterday' }],
  ["an extension of a CloudEvent, as Knative's sources add it", { 'ce-reconciletoken': 'the-token-of-today' }],
])('%s lets a request in, as it came', async (_, headers) => {
  asked.length = 0;
  expect(await post(headers)).toBe(200);
  expect(asked).toEqual(['POST /']);
});

test.each([
  ['none', {}],
  ['an empty one', { authorization: 'Bearer ' }],
  ['a part of it', { authorization: 'Bearer the-token-of-toda' }],
  ['more than it', { authorization: 'Bearer the-token-of-today-' }],
  ['another scheme', { authorization: 'Basic the-token-of-today' }],
  ['both joined', { authorization: 'Bearer the-token-of-today,the-token-of-yesterday' }],
  ['a wrong extension', { 'ce-reconciletoken': 'wrong' }],
])('%s is refused, before anything is read: 401', async (_, headers) => {
  asked.length = 0;
  for (const path of ['/', '/?dry-run=true', '/healthz']) expect(await post(headers, path)).toBe(401);
  expect(asked).toEqual([]);
});

test('a refusal says what to send and where it comes from, and no token', async () => {
  const answer = await guarded(new Request('http://reconcile/', { method: 'POST' }));
  expect(answer.headers.get('www-authenticate')).toBe('Bearer');
  const { error } = (await answer.json()) as { error: string };
  expect(error).toContain('RECONCILE_TOKEN');
  for (const token of TOKENS) expect(error).not.toContain(token);
});

test('probes need none', async () => {
  asked.length = 0;
  expect((await guarded(new Request('http://reconcile/readyz'))).status).toBe(200);
  expect(asked).toEqual(['GET /readyz']);
});
