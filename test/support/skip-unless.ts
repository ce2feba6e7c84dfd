// Tests that are skipped where the machine or the run lacks what they need, with the reason in their name.
import { describe, test } from 'vitest';

/** Why a test of the whole suite is skipped in this run; undefined in the whole suite. */
export const whyNotAll: string | undefined = process.env.TEST_ALL ? undefined : 'part of TEST_ALL=1 npm test';

/** Why a rare case is skipped in this run; undefined in the campaigns. */
export const whyNoCampaign: string | undefined = process.env.TEST_CAMPAIGNS ? undefined : 'part of npm run campaigns';

/** The name, with the reason if any. The summary reporter reads it from there. */
export const named = (name: string, why: string | undefined): string =>
  why === undefined ? name : `${name} (skipped: ${why})`;

/** `describe`, skipped when a reason is given. */
export const describeUnless = (why: string | undefined, name: string, tests: () => void): void =>
  void describe.skipIf(why !== undefined)(named(name, why), tests);

/** `test`, skipped when a reason is given. */
export const testUnless = (
  why: string | undefined,
  name: string,
  body: () => void | Promise<void>,
  millis?: number,
): void => void test.skipIf(why !== undefined)(named(name, why), body, millis);
