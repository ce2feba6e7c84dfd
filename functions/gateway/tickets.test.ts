// Can a step be skipped? Not by anything that compiles: each of these lines is an error to the type checker, or the check fails.
import { expect, test } from 'vitest';
import { keyRecord, snapshotOf } from '../../test/gateway/instance.ts';
import type { Caller } from './authenticate.ts';
import { authorize, type Grant } from './authorize.ts';
import type { PlainExchange, StreamExchange } from './exchange.ts';
import type { Reservation, Reserve } from './reserve.ts';
import type { Route, Targets } from './route.ts';
import type { Settle } from './settle.ts';
import type { Stream } from './stream.ts';
import type { CallUpstream } from './upstream.ts';
import type { Chat } from './wire/chat.ts';

declare const chat: Chat;
declare const reserve: Reserve;
declare const route: Route;
declare const callUpstream: CallUpstream;
declare const settle: Settle;
declare const stream: Stream;

type Line = Parameters<CallUpstream>[2];
type Client = Parameters<CallUpstream>[1];

/** Never run: it is there to be type-checked. Each refused line stands before the same one with its ticket, so that nothing else in it is the error. */
function skippingSteps(line: Line, client: Client): void {
  const snapshot = snapshotOf([]);
  // @ts-expect-error A record that was only looked up is no caller.
  authorize(keyRecord(), chat, snapshot);
  const caller = {} as Caller;
  authorize(caller, chat, snapshot);
  // @ts-expect-error A caller has not been granted anything.
  reserve(caller, line, 0);
  const grant = {} as Grant;
  reserve(grant, line, 0);
  const ranking = {} as Reservation['ranking'];
  const byHand = { grant, ranking, hold: { id: '1', amount: 1n, charges: [] } };
  // @ts-expect-error A grant without money has no targets.
  route(grant, line);
  // @ts-expect-error Money cannot be made by hand.
  route(byHand, line);
  const reservation = {} as Reservation;
  route(reservation, line);
  // @ts-expect-error Nobody is called without targets.
  callUpstream(reservation, client, line);
  const targets = {} as Targets;
  callUpstream(targets, client, line);
  // @ts-expect-error Nothing is answered without an exchange.
  settle.reply(targets, client, line);
  const exchange = {} as PlainExchange;
  settle.reply(exchange, client, line);
  // @ts-expect-error Nothing is streamed without an exchange.
  stream(targets, client, line);
  const streamed = {} as StreamExchange;
  stream(streamed, client, line);
}

test('the steps of a request are held together by types', () => {
  expect(skippingSteps).toBeTypeOf('function');
});
