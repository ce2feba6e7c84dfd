import { expect, test } from 'vitest';
import type { Ledger, ReservationParams } from '#core/ports/ledger.ts';
import { policiesOf } from '../../../test/doubles/policies.ts';
import { KEY, keyRecord } from '../../../test/gateway/instance.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { createTime, settleDown } from '../../../test/gateway/time.ts';
import { MESSAGES } from '../../../test/gateway/upstream.ts';

const CHAT = JSON.stringify({ model: 'gpt', messages: MESSAGES });

/** A gateway with a slow database, and the waiting times that its ledger gets. */
function harness(millis: number) {
  const time = createTime();
  const later = (wait: number): Promise<void> => new Promise((resolve) => void time.timer(wait, resolve));
  const waits: Array<number | undefined> = [];
  const refusal = { ok: false, failure: { reason: 'unavailable', why: 'test' } } as const;
  const ledger: Partial<Ledger> = {
    reserve: async ({ waited }: ReservationParams) => {
      waits.push(waited);
      return refusal;
    },
    knownSpend: (scopes) => scopes.map(() => undefined),
    spend: async (_, waited) => {
      waits.push(waited);
      return refusal;
    },
  };
  const policies = policiesOf(() => later(millis).then(() => keyRecord()));
  const { app } = stage({ deps: { clock: time, timer: time.timer, policies, ledger: ledger as Ledger } });
  return { app, waits: waits, time };
}

const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };

test("the time of the database counts for the deadline of the store, the time of the client's body does not", async () => {
  const { app, waits, time } = harness(300);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const init = { method: 'POST', headers, body: readable, duplex: 'half' };
  const asked = app.request('/chat/completions', init as RequestInit);
  await settleDown();
  await time.pass(300);
  await time.pass(5000);
  const writer = writable.getWriter();
  void writer.write(new TextEncoder().encode(CHAT)).then(() => writer.close());
  await settleDown();
  // The database is read again, because the record is older than five seconds.
  await time.pass(300);
  expect((await asked).status).toBe(503);
  expect(waits).toEqual([600]);
});

test('GET key has the same deadline', async () => {
  const { app, waits, time } = harness(400);
  const asked = app.request('/key', { headers });
  await settleDown();
  await time.pass(400);
  expect((await asked).status).toBe(503);
  expect(waits).toEqual([400]);
});

test('a silent database is a refusal after 0.9 s, without a call of the ledger', async () => {
  const { app, waits, time } = harness(60_000);
  const asked = app.request('/chat/completions', { method: 'POST', headers, body: CHAT });
  await settleDown();
  await time.pass(850);
  await time.pass(50);
  expect((await asked).status).toBe(503);
  expect(waits).toEqual([]);
});
