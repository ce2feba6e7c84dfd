// Steps of a request cannot be skipped: each wrong line here must be an error of the type checker.
import { expect, test } from 'vitest';
import { keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import type { createAuthorize, Grant } from '../caller/access.ts';
import type { Caller } from '../caller/authenticate.ts';
import type { createReply } from '../reply/reply.ts';
import type { ClientContext } from '../request/request-log.ts';
import { type createReserve, type ReservedGrant, toFreeGrant } from '../spend/reserve.ts';
import type { createChooseTargets, Targets } from '../targets/targets.ts';
import { createAttempts } from '../upstream/attempts.ts';
import type { createCallUpstream, Exchange } from '../upstream/upstream.ts';
import type { ModelRequest } from '../wire/request.ts';

declare const request: ModelRequest;
declare const authorize: ReturnType<typeof createAuthorize>;
declare const reserve: ReturnType<typeof createReserve>;
declare const chooseTargets: ReturnType<typeof createChooseTargets>;
declare const callUpstream: ReturnType<typeof createCallUpstream>;
declare const reply: ReturnType<typeof createReply>['reply'];

/** Type-checked, never run. Each wrong line is followed by the same line with its ticket, which must be right. */
function skipSteps(clientContext: ClientContext): void {
  const snapshot = snapshotOf([]);
  const { log } = clientContext;
  // @ts-expect-error The record of a key is not an authenticated caller.
  authorize(keyRecord(), request, snapshot);
  const caller = {} as Caller;
  authorize(caller, request, snapshot);
  // @ts-expect-error A caller has no grant yet.
  reserve(caller, 'id');
  const grant = {} as Grant;
  reserve(grant, 'id');
  // Every member but the ticket: the error below is about nothing else.
  const byHand: Pick<ReservedGrant, 'grant' | 'candidates' | 'reservation'> = {
    grant,
    candidates: [],
    reservation: { id: '1', amount: 1n, scopeWindows: [] },
  };
  // @ts-expect-error A grant has no reservation yet.
  chooseTargets(grant, log);
  // @ts-expect-error An object of the same shape is not a reservation.
  chooseTargets(byHand, log);
  const reserved = {} as ReservedGrant;
  chooseTargets(reserved, log);
  // @ts-expect-error A free request needs a grant as well.
  toFreeGrant(caller);
  chooseTargets(toFreeGrant(grant), log);
  const attempts = createAttempts(reserved);
  // @ts-expect-error A reservation has no targets yet.
  callUpstream(reserved, attempts, clientContext);
  const targets = {} as Targets;
  callUpstream(targets, attempts, clientContext);
  // @ts-expect-error Targets are not an exchange with a provider.
  reply(targets, clientContext);
  const exchange = {} as Exchange;
  reply(exchange, clientContext);
}

test('the steps of a request are held together by types', () => {
  expect(skipSteps).toBeTypeOf('function');
});
