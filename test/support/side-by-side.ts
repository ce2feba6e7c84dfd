// Tests that run at several places concurrently, because they mostly wait.
import { describe } from 'vitest';
import { named } from './skip-unless.ts';

/** A place, and the reason where it is missing here. */
export interface Place {
  readonly name: string;
  readonly why: string | undefined;
}

/** Runs the tests at all places concurrently, and at each place one after another. */
export function describeSideBySide<P extends Place>(
  places: ReadonlyArray<P>,
  name: string,
  tests: (place: P) => void,
): void {
  for (const place of places) {
    describe.skipIf(place.why !== undefined)(named(`on ${place.name}`, place.why), { concurrent: true }, () => {
      describe(name, { concurrent: false }, () => tests(place));
    });
  }
}
