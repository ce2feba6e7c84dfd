// The log of a process: one JSON line each, without secrets.
import type { Clock } from '#core/ports/clock.ts';
import type { Log } from '#core/ports/telemetry.ts';

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

/**
 * The line is `{"time","level","message",…fields}`. Text that looks like a key value or a bearer token is redacted,
 * wherever it stands.
 */
export function createLog({ write, fields: always = {}, level: lowest = 'info', clock = Date }: LogOptions): Log {
  const timeOf = createTimes();
  const at = (level: LogLevel): Log[LogLevel] => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(lowest)) return () => undefined;
    return (message, fields = {}) => {
      const first = { time: timeOf(clock.now()), level, message };
      const line = toLine({ ...first, ...always }, fields);
      // Named twice: these three come first, and nothing replaces them.
      write(`${line ?? JSON.stringify(toPlain({ ...first, ...always, ...fields, ...first }))}\n`);
    };
  };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

/** Dates of milliseconds: many lines have the same. */
function createTimes(): (millis: number) => string {
  let last = Number.NaN;
  let text = '';
  return (millis) => {
    if (millis !== last) text = new Date(millis).toISOString();
    last = millis;
    return text;
  };
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Most lines are written by JSON itself, and are seen to hold no secret: JSON escapes nothing that `SUSPICIOUS` looks
 * for.
 */
function toLine(head: Fields, fields: Fields): string | undefined {
  for (const name in head) if (name in fields) return undefined;
  if (!isPlain(head) || !isPlain(fields)) return undefined;
  const text = JSON.stringify(fields);
  const line = text === '{}' ? JSON.stringify(head) : `${JSON.stringify(head).slice(0, -1)},${text.slice(1)}`;
  return SUSPICIOUS.test(line) ? undefined : line;
}

/** Texts, numbers and lists of texts, and objects of these: nothing that JSON leaves out, refuses or goes round in. */
function isPlain(fields: object, isMember = false): boolean {
  for (const value of Object.values(fields)) {
    if (typeof value === 'bigint') return false;
    if (typeof value !== 'object' || value === null) continue;
    const isKnown = Array.isArray(value)
      ? value.every((entry) => typeof entry === 'string')
      : !isMember && Object.getPrototypeOf(value) === Object.prototype && isPlain(value, true);
    if (!isKnown) return false;
  }
  return true;
}

/**
 * Our key values and those of most providers (`sk-…`, `sk-proj-…`), whatever follows `Bearer`, and passwords in
 * addresses.
 */
export function redact(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return text
    .replace(/sk-[0-9A-Za-z]{20,}|\bsk-[0-9A-Za-z_-]{20,}/g, 'sk-[redacted]')
    .replace(/\b(bearer)(\s+)[^\s"'\\,;]+/gi, '$1$2[redacted]')
    .replace(/(:\/\/[^\s/:@]*):[^\s/@]+@/g, '$1:[redacted]@');
}

/** Every match of the patterns above has one of these in it, and nearly no text has. */
const SUSPICIOUS = /sk-|[bB][eE][aA][rR][eE][rR]|:\/\//;

/** A getter that makes new objects for ever ends at this depth. */
const MAX_DEPTH = 12;

/**
 * The same as JSON can say it, without secrets: errors with their causes, exact big integers, cycles named instead of
 * followed.
 */
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
