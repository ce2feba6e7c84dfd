// A hostile database may send any number of rows: every call ends.
import { expect, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { createClaims } from '../claims.ts';
import { createInstances } from '../instances.ts';
import type { Query, Session } from '../session.ts';

const PORTION = 5000;

/** A session whose server answers with the rows of `answer`, and how often it was asked for rows. */
function createDouble(answer: (text: string) => ReadonlyArray<object> | undefined) {
  const asked = { times: 0 };
  // The rows are those that the test wants.
  const query = (async (statement: string | { readonly text: string }) => {
    const rows = answer(typeof statement === 'string' ? statement : statement.text);
    if (rows !== undefined) asked.times += 1;
    return rows ?? [];
  }) as Query;
  const session: Session = {
    workMemory: undefined,
    run: (_, work) => work(query),
    query: (_, ...call) => query(...call),
    transaction: (_, work) => work(query),
    withWorkMemory: () => session,
    disconnect: async () => undefined,
    close: async () => undefined,
  };
  return { session, asked };
}

const state = (text: string) =>
  text.startsWith('select adopted_from')
    ? [{ uid: 'old' }]
    : text.includes('hasClaims')
      ? [{ now: 0, predecessor: { uid: 'old', since: 0 }, place: null, hasClaims: true, isOpen: true }]
      : undefined;
const isPortion = (text: string): boolean =>
  text.includes('from moved') || text.startsWith('select scope_id from gateway_operator.claim');
let last = 0;
const next = () => `scope ${last++}`;
const portion = (id: () => string) => Array.from({ length: PORTION }, () => ({ scope_id: id() }));

test.each([
  ['closes', (instances: ReturnType<typeof createInstances>) => instances.closeInstance('i')],
  ['opens', (instances) => instances.openInstance({ uid: 'i', namespace: 'n', name: 'n' })],
])('a server that lists other claims for ever %s an instance in a bounded number of portions', async (_, call) => {
  const { session, asked } = createDouble((text) => state(text) ?? (isPortion(text) ? portion(next) : undefined));
  await expect(call(createInstances(session))).rejects.toThrow(DatabaseUnreachable);
  expect(asked.times).toBeLessThan(250);
});

test('a server that lists the same claims again is asked no more', async () => {
  const same = portion(next);
  const { session, asked } = createDouble((text) => (isPortion(text) ? same : undefined));
  await expect(createInstances(session).closeInstance('i')).rejects.toThrow('drop the trigger or rule');
  expect(asked.times).toBe(2);
});

test('a server whose pages of claims have no end is away', async () => {
  const row = {
    ...{ scopeId: 'one', kind: 'key', alias: 'a', uid: 'u', namespace: 'n', name: 'n' },
    ...{ policy: null, previousHolders: null, isOwnerGone: false, anchor: 0, values: [], bytes: 10_000_000 },
  };
  const { session, asked } = createDouble(() => [row]);
  await expect(createClaims(session).claims('i')).rejects.toThrow(DatabaseUnreachable);
  expect(asked.times).toBe(500);
});
