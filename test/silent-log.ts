// A log that nobody reads.
import type { Log } from '#core/ports/clock.ts';

export const silentLog: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };
