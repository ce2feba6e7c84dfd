// The log of a process: one JSON line each, without secrets.
import type { Clock, Log } from '#core/ports/clock.ts';

const LEVELS = ['info', 'warn', 'error'] as const;
export type LogLevel = (typeof LEVELS)[number];

interface LogOptions {
  /** Takes one line, its end included. */
  readonly write: (line: string) => void;
  /** Fields of every line, such as the function's name. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Lines below this are not written; default `info`. */
  readonly level?: LogLevel;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

/** The line is `{"time","level","message",…fields}`. Text that looks like a key value or a bearer token is redacted, wherever it stands. */
export function createLog({ write, fields: always = {}, level: lowest = 'info', clock = Date }: LogOptions): Log {
  const at = (level: LogLevel): Log[LogLevel] => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(lowest)) return () => undefined;
    return (message, fields = {}) => {
      const first = { time: new Date(clock.now()).toISOString(), level, message };
      // Named twice: these three come first, and nothing replaces them.
      write(`${toLine({ ...first, ...always, ...fields, ...first })}\n`);
    };
  };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

/** Most lines are said by JSON itself, and are seen to hold no secret: it escapes nothing that `SUSPICIOUS` looks for. */
function toLine(fields: Readonly<Record<string, unknown>>): string {
  const line = isPlain(fields) ? JSON.stringify(fields) : undefined;
  return line === undefined || SUSPICIOUS.test(line) ? JSON.stringify(toPlain(fields)) : line;
}

/** Texts, numbers and lists of texts, and objects of these: nothing that JSON leaves out, refuses or goes round in. */
function isPlain(fields: object, isMember = false): boolean {
  return Object.values(fields).every((value) => {
    if (typeof value === 'bigint') return false;
    if (typeof value !== 'object' || value === null) return true;
    if (Array.isArray(value)) return value.every((entry) => typeof entry === 'string');
    return !isMember && Object.getPrototypeOf(value) === Object.prototype && isPlain(value, true);
  });
}

/** Key values of ours and of most providers (`sk-…`, `sk-proj-…`), whatever follows `Bearer`, and passwords in addresses. */
export function redact(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return text
    .replace(/sk-[0-9A-Za-z]{20,}|\bsk-[0-9A-Za-z_-]{20,}/g, 'sk-[redacted]')
    .replace(/\b(bearer)(\s+)[^\s"'\\,;]+/gi, '$1$2[redacted]')
    .replace(/(:\/\/[^\s/:@]*):[^\s/@]+@/g, '$1:[redacted]@');
}

/** Every match of the patterns above has one of these in it, and nearly no text has. */
const SUSPICIOUS = /sk-|bearer|:\/\//i;

/** A getter that makes new objects for ever ends at this depth. */
const MAX_DEPTH = 12;

/** The same as JSON can say it, without secrets: errors with their causes, exact big integers, cycles named instead of followed. */
function toPlain(value: unknown, above: ReadonlyArray<object> = []): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '[cycle]';
  if (above.length === MAX_DEPTH) return '[deep]';
  const path = [...above, value];
  const inner = (member: unknown) => toPlain(member, path);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof Error) return inner({ ...errorParts(value) });
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return Array.from(value, inner);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [redact(name), inner(member)]));
}

function errorParts(error: Error): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const code = 'code' in error ? error.code : undefined;
  return { name, message, code, stack, cause };
}
