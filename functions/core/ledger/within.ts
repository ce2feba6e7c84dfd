// What if the answer never comes? After so many milliseconds it counts as silence.
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';

/** Somebody was asked and kept silent. */
export class Silence extends Error {
  override readonly name = 'Silence';
}

/** A process that could do nothing for a while finds time-outs before the answers that have come meanwhile: so long it reads them, then it is over. */
export const LOOK: Millis = 50;

/** The promise's outcome, or a `Silence` naming `whom`. The promise itself goes on; a late failure of it is nobody's concern. */
export function within<T>(timer: Timer, millis: Millis, whom: string, promise: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let cancel = timer(millis - LOOK, () => {
      cancel = timer(LOOK, () => reject(new Silence(`${whom} kept silent for ${millis} ms`)));
    });
    promise.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error) => {
        cancel();
        reject(error);
      },
    );
  });
}
