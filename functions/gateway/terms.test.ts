import { expect, test } from 'vitest';
import type { KeyRecord } from '#core/ports/policy.ts';
import { ok } from '#core/result.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../test/gateway/instance.ts';
import { stage } from '../../test/gateway/stage.ts';
import { NOW } from '../../test/gateway/time.ts';
import { type Caller, createAuthenticate } from './authenticate.ts';
import { termsOf } from './terms.ts';

const CHAT = { model: 'gpt', messages: [] };

async function callerOf(record: KeyRecord): Promise<Caller> {
  const authenticate = createAuthenticate({ hash: (text) => text, clock: { now: () => NOW } }, () => ok(record));
  const caller = await authenticate({ header: () => `Bearer ${KEY}` });
  if (!caller.ok) throw new Error(caller.failure.code);
  return caller.value;
}

const termsIn = <T>(result: { readonly ok: boolean; readonly value?: T }): T | undefined => result.value;

test('the terms of a key for a model are worked out once, and anew with its next policy or the next snapshot', async () => {
  const [record, snapshot] = [keyRecord(), snapshotOf([entry('gpt')])];
  const first = termsIn(termsOf(await callerOf(record), 'gpt', snapshot));
  expect(first?.payers.map(({ scopeId }) => scopeId)).toEqual(['key-scope']);
  expect(termsIn(termsOf(await callerOf(record), 'gpt', snapshot))).toBe(first);
  expect(termsIn(termsOf(await callerOf(keyRecord({ limit: '2' })), 'gpt', snapshot))?.payers).not.toBe(first?.payers);
  const other = snapshotOf([entry('gpt', { identifier: 'another' })]);
  expect(termsIn(termsOf(await callerOf(record), 'gpt', other))?.candidates[0]?.entry.identifier).toBe('another');
});

test('a model that is refused once is not refused for ever, and one that was allowed is not allowed for ever', async () => {
  const keys: Record<string, KeyRecord> = { [KEY]: keyRecord({ models: ['other'] }) };
  let snapshot = snapshotOf([entry('gpt')]);
  const { chat, clock } = stage({
    deps: {
      policies: { find: async (hash) => keys[hash.replace(/^hash of /, '')] },
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

test('a credential that is renewed goes with the next request, and one that is gone with none', async () => {
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
