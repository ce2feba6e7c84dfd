// The search for a failing schedule: random by seed, or all that deviate from the usual one in a few places.
import { random } from '../../support/random.ts';
import { atRandom, bySequence, shrink } from './choice.ts';
import type { Scenario } from './execution.ts';
import { runSchedule, type ScheduleResult } from './run-schedule.ts';
import { scenarioOf } from './scenarios.ts';

export interface Violation {
  readonly seed?: number;
  readonly wrong: ReadonlyArray<string>;
  readonly steps: ReadonlyArray<string>;
}

/**
 * The violations and all steps that led to them; empty where all is right. A star marks a deviation from the usual
 * step.
 */
export function report(found: Violation | undefined): string {
  if (found === undefined) return '';
  const seed = found.seed === undefined ? '' : `seed ${found.seed}\n`;
  return `${seed}${found.wrong.join('\n')}\nafter\n${found.steps.join('\n')}`;
}

const runSafely = async (...[scenario, chooser]: Parameters<typeof runSchedule>): Promise<ScheduleResult> => {
  try {
    return await runSchedule(scenario, chooser);
  } catch (error) {
    return { wrong: [error instanceof Error ? (error.stack ?? error.message) : String(error)], steps: [] };
  }
};

/** The first failing seed, with its schedule minimised. */
export async function searchAtRandom(first: number, count: number): Promise<Violation | undefined> {
  const failing = await firstFailing(first, count);
  return failing && { seed: failing.seed, ...(await shortest(failing.scenario, failing.sequence)) };
}

/** `part` replaces that of the seed's scenario. */
export async function firstFailing(first: number, count: number, part?: Partial<Scenario>) {
  for (let seed = first; seed < first + count; seed += 1) {
    const scenario = { ...scenarioOf(seed), ...part };
    const next = random(seed);
    const chooser = atRandom(next, [0.05, 0.15, 0.4][seed % 3] ?? 0.1);
    const { wrong } = await runSafely(scenario, chooser);
    if (wrong.length > 0) return { seed, scenario, sequence: chooser.sequence };
  }
  return undefined;
}

async function shortest(scenario: Scenario, sequence: ReadonlyArray<number>): Promise<ScheduleResult> {
  const isWrong = async (candidate: ReadonlyArray<number>) =>
    (await runSafely(scenario, bySequence(candidate))).wrong.length > 0;
  return runSafely(scenario, bySequence(await shrink(sequence, isWrong)));
}

export interface SearchResult {
  readonly schedules: number;
  readonly found: Violation | undefined;
}

/** Every schedule of the scenario that deviates from the usual one in at most `deviations` choices. */
export async function searchAll(scenario: Scenario, deviations: number): Promise<SearchResult> {
  let schedules = 0;
  const search = async (sequence: ReadonlyArray<number>, left: number): Promise<Violation | undefined> => {
    const chooser = bySequence(sequence);
    schedules += 1;
    const { wrong, steps } = await runSafely(scenario, chooser);
    if (wrong.length > 0) return { wrong, steps };
    if (left === 0) return undefined;
    const { widths } = chooser;
    for (let at = sequence.length; at < widths.length; at += 1) {
      const usual = Array.from({ length: at - sequence.length }, () => 0);
      for (let place = 1; place < (widths[at] ?? 0); place += 1) {
        const found = await search([...sequence, ...usual, place], left - 1);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  const found = await search([], deviations);
  return { schedules, found };
}
