// A log that drops every line.
import type { Log } from '#core/ports/telemetry.ts';

export const silentLog: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };
