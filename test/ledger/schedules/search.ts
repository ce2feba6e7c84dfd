// The search for a failing schedule: random by seed, or all that deviate from the usual one in a few places.
import { random } from '../../support/random.ts';
import { atRandom, byTape, shrink } from './choice.ts';
import type { Scenario } from './course.ts';
import { type PlayResult, play } from './play.ts';
import { scenarioOf } from './scenarios.ts';

export interface Violation {
  readonly seed?: number;
  readonly wrong: ReadonlyArray<string>;
  readonly story: ReadonlyArray<string>;
}

/**
 * The violations and all steps that led to them; empty where all is right. A star marks a deviation from the usual
 * step.
 */
export function report(found: Violation | undefined): string {
  if (found === undefined) return '';
  const seed = found.seed === undefined ? '' : `seed ${found.seed}\n`;
  return `${seed}${found.wrong.join('\n')}\nafter\n${found.story.join('\n')}`;
}

const playSafely = async (...[scenario, chooser]: Parameters<typeof play>): Promise<PlayResult> => {
  try {
    return await play(scenario, chooser);
  } catch (error) {
    return { wrong: [error instanceof Error ? (error.stack ?? error.message) : String(error)], story: [] };
  }
};

/** The first failing seed, with its schedule minimised. */
export async function searchAtRandom(first: number, count: number): Promise<Violation | undefined> {
  const failing = await firstFailing(first, count);
  return failing && { seed: failing.seed, ...(await shortest(failing.scenario, failing.tape)) };
}

/** `part` replaces that of the seed's scenario. */
export async function firstFailing(first: number, count: number, part?: Partial<Scenario>) {
  for (let seed = first; seed < first + count; seed += 1) {
    const scenario = { ...scenarioOf(seed), ...part };
    const next = random(seed);
    const chooser = atRandom(next, [0.05, 0.15, 0.4][seed % 3] ?? 0.1);
    const { wrong } = await playSafely(scenario, chooser);
    if (wrong.length > 0) return { seed, scenario, tape: chooser.tape };
  }
  return undefined;
}

async function shortest(scenario: Scenario, tape: ReadonlyArray<number>): Promise<PlayResult> {
  const isWrong = async (candidate: ReadonlyArray<number>) =>
    (await playSafely(scenario, byTape(candidate))).wrong.length > 0;
  return playSafely(scenario, byTape(await shrink(tape, isWrong)));
}

export interface SearchResult {
  readonly schedules: number;
  readonly found: Violation | undefined;
}

/** Every schedule of the scenario that deviates from the usual one in at most `deviations` choices. */
export async function searchAll(scenario: Scenario, deviations: number): Promise<SearchResult> {
  let schedules = 0;
  const search = async (tape: ReadonlyArray<number>, left: number): Promise<Violation | undefined> => {
    const chooser = byTape(tape);
    schedules += 1;
    const { wrong, story } = await playSafely(scenario, chooser);
    if (wrong.length > 0) return { wrong, story };
    if (left === 0) return undefined;
    const { widths } = chooser;
    for (let at = tape.length; at < widths.length; at += 1) {
      const usual = Array.from({ length: at - tape.length }, () => 0);
      for (let place = 1; place < (widths[at] ?? 0); place += 1) {
        const found = await search([...tape, ...usual, place], left - 1);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  const found = await search([], deviations);
  return { schedules, found };
}
