// The scenario of the promises of rates: asks that use rates and cost nothing, sent by a process.

import type { RateChange, ReservationReply, ReservationRequest } from '../counter-store.ts';
import type { Millis } from '../money.ts';
import { perEstimatedRate, perRate, type RateLimit, type RateRequest } from '../rates.ts';
import {
  type AccountsUnderTest,
  accountsScenario,
  type Process,
  requestOf,
} from './counter-store.scenario.promises.ts';

export const MINUTE: Millis = 60_000;

export const ratesOf = (limits: ReadonlyArray<RateLimit>, more: Partial<RateRequest> = {}): RateRequest => ({
  ...perEstimatedRate(() => 10),
  limits,
  modelEntryLimits: [],
  ...more,
});

/** A request without counters. */
export const rateRequestOf = (rates: RateRequest): ReservationRequest => requestOf(0n, { counters: [], rates });

export const rateChangeOf = (id: string, part: Partial<RateChange> = {}): RateChange => ({
  id,
  ...perRate(() => 0),
  ...part,
});

/** Sends one call with a request for each of these rates, in order. */
export async function requestAll(
  by: Process,
  rates: ReadonlyArray<RateRequest>,
): Promise<ReadonlyArray<ReservationReply>> {
  return (await by.call({ requests: rates.map(rateRequestOf) })).replies;
}

export async function requestOne(by: Process, rates: RateRequest): Promise<ReservationReply | undefined> {
  return (await requestAll(by, [rates]))[0];
}

/** The outcomes of this number of requests for the same rates. */
export async function outcomes(by: Process, count: number, rates: RateRequest): Promise<string[]> {
  return (
    await requestAll(
      by,
      Array.from({ length: count }, () => rates),
    )
  ).map(({ outcome }) => outcome);
}

/** The scenario of rates, over one store like `accountsScenario`. */
export function ratesScenario(under: () => AccountsUnderTest) {
  const { loadCounter, start, freeze, forget } = accountsScenario(under);

  /** Advances to the next minute, if a real clock would otherwise reach it in the middle of a test. */
  const avoidEdge = async (): Promise<void> => {
    const left = MINUTE - (under().now() % MINUTE);
    if (left < 1900) await under().advance(left + 1);
  };
  /** Advances to this place in the next minute. For manual clocks. */
  const goTo = (inMinute: Millis): Promise<void> => under().advance(MINUTE - (under().now() % MINUTE) + inMinute);

  return { loaded: loadCounter, start, freeze, forget, avoidEdge, goTo };
}
