import { expect, test } from 'vitest';
import { ok } from '#core/failure/result.ts';
import type { Snapshot } from '#core/models/snapshot.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import { policiesOf } from '../../../test/doubles/policies.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { NOW } from '../../../test/gateway/time.ts';
import { createAuthorize } from '../caller/access.ts';
import { createAuthenticate } from '../caller/authenticate.ts';
import { chat as api } from '../wire/chat/chat.ts';
import type { ModelRequest } from '../wire/request.ts';

const CHAT = { model: 'gpt', messages: [] };
const chat = { model: 'gpt' } as ModelRequest;

async function callerOf(record: KeyRecord) {
  const deps = { hash: (text: string) => text, clock: { now: () => NOW } };
  const authenticate = createAuthenticate(deps, async () => ok({ record, freshUntil: NOW }));
  const caller = await authenticate({ header: () => `Bearer ${KEY}` });
  if (!caller.ok) throw new Error(caller.failure.failure.code);
  return caller.value;
}

test('the access of a key to a model is compiled once for each policy and snapshot', async () => {
  const authorize = createAuthorize(new Map(), api);
  const [record, snapshot] = [keyRecord(), snapshotOf([entry('gpt')])];
  const grantOf = async (key: KeyRecord, now: Snapshot) => {
    const grant = authorize(await callerOf(key), chat, now);
    return grant.ok ? grant.value : undefined;
  };
  const first = await grantOf(record, snapshot);
  expect(first?.chargedScopes.map(({ scopeId }) => scopeId)).toEqual(['key-scope']);
  expect((await grantOf(record, snapshot))?.candidates).toBe(first?.candidates);
  expect((await grantOf(keyRecord({ limit: '2' }), snapshot))?.chargedScopes[0]?.budget?.limit).toBe('2000000000');
  const other = snapshotOf([entry('gpt', { identifier: 'another' })]);
  expect((await grantOf(record, other))?.candidates[0]?.entry.identifier).toBe('another');
});

test('a change of the policy changes a refused model to an allowed one, and back', async () => {
  const keys: Record<string, KeyRecord> = { [KEY]: keyRecord({ models: ['other'] }) };
  let snapshot = snapshotOf([entry('gpt')]);
  const { chat, clock } = stage({
    deps: {
      policies: policiesOf((hash) => keys[hash.replace(/^hash of /, '')]),
      snapshots: { current: () => snapshot },
    },
  });
  const statuses: number[] = [];
  const ask = async () => void statuses.push((await chat(CHAT)).status);
  await ask();
  keys[KEY] = keyRecord();
  await clock.pass(5_000);
  await ask();
  snapshot = snapshotOf([entry('other')]);
  await ask();
  snapshot = snapshotOf([entry('gpt')]);
  keys[KEY] = keyRecord({ models: ['other'] });
  await clock.pass(5_000);
  await ask();
  expect(statuses).toEqual([403, 200, 404, 403]);
});

test('a renewed credential is sent with the next request, a removed one is not sent', async () => {
  let key: string | undefined = 'first\n';
  const { chat, fake } = stage({ deps: { credentials: { read: () => key } } });
  await chat(CHAT);
  key = 'second\n';
  await chat(CHAT);
  key = undefined;
  expect((await chat(CHAT)).status).toBe(503);
  key = 'second\n';
  await chat(CHAT);
  expect(fake.requests.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer first',
    'Bearer second',
    'Bearer second',
  ]);
});
