// A log that a test can read.
import type { Log } from '#core/ports/telemetry.ts';

export interface LoggedLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export type MemoryLog = Log & { readonly lines: ReadonlyArray<LoggedLine> };

export function createMemoryLog(): MemoryLog {
  const lines: LoggedLine[] = [];
  const at =
    (level: LoggedLine['level']): Log['info'] =>
    (message, fields = {}) => {
      lines.push({ level, message, fields });
    };
  return { lines, info: at('info'), warn: at('warn'), error: at('error') };
}
