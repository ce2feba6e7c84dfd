// The time from a reply's last byte until the counter store has its cost.
import { setTimeout as pause } from 'node:timers/promises';
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { Harness, Key } from './harness.ts';
import { ask, recovered } from './load.ts';
import { FAILING } from './upstream.ts';

export interface SettlementDelays {
  /** Milliseconds per reply, measured from outside, so with the time of the query. */
  readonly settled: ReadonlyArray<number>;
  readonly released: ReadonlyArray<number>;
}

const LOOK_AGAIN = 2;
const TIMEOUT = 10_000;

/** Sends one request at a time, through each gateway in turn. The key must have no other user. */
export async function measureSettlementDelays(harness: Harness, key: Key, requests: number): Promise<SettlementDelays> {
  const [settled, released]: [number[], number[]] = [[], []];
  // The first request loads the counter.
  await recovered(harness, [key]);
  for (let at = 0; at < requests; at += 1) {
    const url = harness.gateways[at % harness.gateways.length]?.url ?? '';
    const counter = await counterOf(harness, key);
    const before = await spentOf(harness, counter);
    const { completed } = await ask(url, key, at % 2 === 0);
    if (completed === undefined) throw new Error('a reply did not end');
    settled.push(await until(async () => (await spentOf(harness, counter)) !== before));
    const { status } = await ask(url, key, false, FAILING);
    if (status === 200) throw new Error('the upstream did not fail');
    released.push(await until(() => isFree(harness, counter)));
  }
  return { settled, released };
}

async function until(isThere: () => Promise<boolean>): Promise<number> {
  const began = performance.now();
  while (!(await isThere())) {
    if (performance.now() - began > TIMEOUT) throw new Error(`the cost did not reach the store in ${TIMEOUT} ms`);
    await pause(LOOK_AGAIN);
  }
  return performance.now() - began;
}

async function counterOf({ counterStore }: Harness, { scopeId }: Key): Promise<ScopeWindow> {
  const { counters } = await counterStore.loaded(0, 100);
  const counter = counters.find((each) => each.scopeId === scopeId);
  if (counter === undefined) throw new Error('its counter is not loaded');
  return counter;
}

async function spentOf({ counterStore }: Harness, counter: ScopeWindow): Promise<bigint | undefined> {
  const [state] = await counterStore.read([counter]);
  return state?.spent;
}

/** Whether nothing is reserved, not even escrow ahead of requests. */
async function isFree({ counterStore }: Harness, counter: ScopeWindow): Promise<boolean> {
  const [state] = await counterStore.read([counter]);
  return state?.escrowOfAll === 0n;
}
