// The same tests at several places at once, for tests that mostly wait.
import { describe } from 'vitest';
import { named } from './skip-unless.ts';

/** A place, and why there is none such here. */
export interface Place {
  readonly name: string;
  readonly why: string | undefined;
}

/** The same tests at all places at once; at each of them one after another. */
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
