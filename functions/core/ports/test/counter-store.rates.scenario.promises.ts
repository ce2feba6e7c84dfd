// The scenario of the promises of rates: asks that use rates and cost nothing, sent by a process.

import type { RateChange, ReservationReply, ReservationRequest } from '../counter-store.ts';
import type { Millis } from '../money.ts';
import type { RateLimit, RateRequest } from '../rates.ts';
import { type AccountsUnderTest, accountsScenario, ask, type Process } from './counter-store.scenario.promises.ts';

export const MINUTE: Millis = 60_000;

export const rated = (limits: ReadonlyArray<RateLimit>, more: Partial<RateRequest> = {}): RateRequest => ({
  tokens: 10,
  limits,
  entries: [],
  ...more,
});

/** An ask without counters. */
export const askRates = (rates: RateRequest): ReservationRequest => ask(0n, { counters: [], rates });

export const use = (id: string, part: Partial<RateChange> = {}): RateChange => ({
  id,
  requests: 0,
  tokens: 0,
  parallel: 0,
  ...part,
});

/** Asks for these rates, each after the other in one call. */
export async function takeAll(
  by: Process,
  rates: ReadonlyArray<RateRequest>,
): Promise<ReadonlyArray<ReservationReply>> {
  return (await by.call({ requests: rates.map(askRates) })).replies;
}

export async function takeOne(by: Process, rates: RateRequest): Promise<ReservationReply | undefined> {
  return (await takeAll(by, [rates]))[0];
}

/** The outcomes of so many asks for the same rates. */
export async function outcomes(by: Process, count: number, rates: RateRequest): Promise<string[]> {
  return (
    await takeAll(
      by,
      Array.from({ length: count }, () => rates),
    )
  ).map(({ outcome }) => outcome);
}

/** The scenario over one store, as `accountsScene`. */
export function ratesScenario(under: () => AccountsUnderTest) {
  const { loaded, start } = accountsScenario(under);

  /** Advances to the next minute where a real clock would pass its edge in the middle of a test. */
  const avoidEdge = async (): Promise<void> => {
    const left = MINUTE - (under().now() % MINUTE);
    if (left < 1900) await under().advance(left + 1);
  };
  /** Advances to this place in the next minute. For manual clocks. */
  const goTo = (inMinute: Millis): Promise<void> => under().advance(MINUTE - (under().now() % MINUTE) + inMinute);

  return { loaded, start, avoidEdge, goTo };
}
