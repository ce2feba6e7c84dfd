// What does a test give to what logs, when nobody reads it?
import type { Log } from '#core/ports/clock.ts';

export const silentLog: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };
