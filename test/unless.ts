// How does a test say why it is skipped, where the machine lacks what it needs?
import { describe, test } from 'vitest';

/** The name, with the reason where there is one. */
export const named = (name: string, why: string | undefined): string =>
  why === undefined ? name : `${name} (skipped: ${why})`;

/** `describe`, skipped where there is a reason to. */
export const describeUnless = (why: string | undefined, name: string, tests: () => void): void =>
  void describe.skipIf(why !== undefined)(named(name, why), tests);

/** `test`, skipped where there is a reason to. */
export const testUnless = (
  why: string | undefined,
  name: string,
  body: () => void | Promise<void>,
  millis?: number,
): void => void test.skipIf(why !== undefined)(named(name, why), body, millis);
