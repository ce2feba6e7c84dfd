// Failures of a ledger that no reply shows: each is logged and counted, and none stops other work.

import { reasonAndCausesOf } from '../failure/error-text.ts';
import type { Timer } from '../ports/platform.ts';
import type { Log } from '../ports/telemetry.ts';
import type { StoreContext } from './context.ts';

export type FailureContext = Pick<StoreContext, 'log' | 'metrics' | 'instanceUid'>;

interface Failure {
  readonly level: keyof Log;
  readonly message: string;
  /** The message of the first success after a failure of repeated work. */
  readonly recovery?: string;
  /** The counter of these failures. Absent: `gateway_operator_ledger_failures_total`, by `step`. */
  readonly metric?: string;
}

const BOOKING_FAILURES = 'gateway_operator_ledger_booking_failures_total';

/** Each step whose failure no reply shows. */
const FAILURES = {
  request: { level: 'error', message: 'ledger: no reservation can be made for a request (our error)' },
  cost: {
    level: 'error',
    message: 'ledger: the cost of a request so far is unknown, so its whole reservation counts (our error)',
  },
  notice: { level: 'error', message: 'ledger: a request whose account was closed cannot be stopped (our error)' },
  call: {
    level: 'error',
    message: 'ledger: the code of a call to the counter store failed, so the process opens a new account (our error)',
  },
  timer: { level: 'error', message: 'ledger: a timer failed (our error)' },
  charge: { level: 'error', message: 'ledger: a request that never ended cannot be charged' },
  booking: {
    level: 'warn',
    message: 'ledger: booking in PostgreSQL failed, and is repeated',
    metric: BOOKING_FAILURES,
    recovery: 'ledger: PostgreSQL accepts ledger rows again',
  },
  sums: {
    level: 'warn',
    message: 'ledger: sums cannot be loaded into the counter store; loading is repeated',
    recovery: 'ledger: sums are loaded again',
  },
  heartbeat: {
    level: 'warn',
    message: 'ledger: the heartbeat in PostgreSQL failed, and is repeated',
    recovery: 'ledger: PostgreSQL accepts the heartbeat again',
  },
  join: {
    level: 'warn',
    message: 'ledger: the process cannot join the epoch, and tries again',
    recovery: 'ledger: the process has joined the epoch',
  },
  disk: {
    level: 'error',
    message: 'ledger: the disk refuses the journal, which is discarded; until a restart, replies wait for PostgreSQL',
  },
  records: { level: 'error', message: 'ledger: records that are not needed stay in the journal (our error)' },
  audit: {
    level: 'warn',
    message:
      'ledger: counters cannot be audited, because too many charges are not booked yet; the next audit compares them',
  },
  maintenance: { level: 'warn', message: 'ledger: the counters of the counter store cannot be audited' },
  close: { level: 'warn', message: 'ledger: an account cannot be closed' },
  stop: {
    level: 'warn',
    message: 'ledger: a step of the stop failed; another process closes the account when its lease ends',
  },
} as const satisfies Record<string, Failure>;

export type Step = keyof typeof FAILURES;

export function logFailure(context: FailureContext, step: Step, cause: unknown, fields = {}): void {
  const { level, message } = FAILURES[step];
  count(context, step);
  context.log[level](message, { instance: context.instanceUid, ...fields, why: reasonAndCausesOf(cause) });
}

function count({ metrics }: FailureContext, step: Step): void {
  const { metric }: Failure = FAILURES[step];
  if (metric === undefined) metrics.add('gateway_operator_ledger_failures_total', { step });
  else metrics.add(metric);
}

/** Repeated work: every failure is counted; the first failure, each new cause and the first success are logged. */
export function createFailureLog(context: FailureContext, step: Step) {
  const { recovery = '' }: Failure = FAILURES[step];
  let last: string | undefined;
  return {
    failed(cause: unknown): void {
      const why = reasonAndCausesOf(cause);
      if (why === last) count(context, step);
      else logFailure(context, step, cause);
      last = why;
    },
    succeeded(): void {
      if (last !== undefined) context.log.info(recovery, { instance: context.instanceUid });
      last = undefined;
    },
  };
}

/** Runs work whose error must stop nothing else. */
export function guard(context: FailureContext, step: Step, work: () => void, fields = {}): void {
  try {
    work();
  } catch (error) {
    logFailure(context, step, error, fields);
  }
}

/** A timer whose callbacks end no process. */
export const guardTimer =
  (context: FailureContext, timer: Timer): Timer =>
  (millis, callback) =>
    timer(millis, () => guard(context, 'timer', callback));
