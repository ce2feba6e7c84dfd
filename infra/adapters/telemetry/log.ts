// The log of a process: JSON lines without secrets.
import type { Clock } from '#core/ports/clock.ts';
import type { Log } from '#core/ports/telemetry.ts';

const LEVELS = ['info', 'warn', 'error'] as const;
export type LogLevel = (typeof LEVELS)[number];

interface LogOptions {
  /** Gets one line with its line feed. */
  readonly write: (line: string) => void;
  /** Fields of every line, such as the function's name. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Lines below this are not written; default `info`. */
  readonly level?: LogLevel;
  /** Default: the clock of the machine. */
  readonly clock?: Clock;
}

/**
 * The line is `{"time","level","message",…fields}`. Text that looks like a key value or a bearer token is redacted,
 * wherever it is.
 */
export function createLog({ write, fields: always = {}, level: lowest = 'info', clock = Date }: LogOptions): Log {
  const timeOf = createTimes();
  const reserved = new Set(['time', 'level', 'message', ...Object.keys(always)]);
  const alwaysText =
    isPlain(always) && reserved.size === 3 + Object.keys(always).length ? membersOf(always) : undefined;
  const at = (level: LogLevel): Log[LogLevel] => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(lowest)) return () => undefined;
    return (message, fields = {}) => {
      const time = timeOf(clock.now());
      const line = toLine(`{"time":"${time}","level":"${level}","message":${JSON.stringify(message)}`, fields);
      if (line !== undefined) return write(`${line}\n`);
      const first = { time, level, message };
      // These three are first, and no field replaces them: so they are written before and after the fields.
      write(`${JSON.stringify(toPlain({ ...first, ...always, ...fields, ...first }))}\n`);
    };
  };
  /**
   * The line as `JSON.stringify` writes it. Undefined if it may contain a secret, which few lines do: JSON escapes no
   * character of `SUSPICIOUS`.
   */
  const toLine = (head: string, fields: Fields): string | undefined => {
    if (alwaysText === undefined || !isPlain(fields)) return undefined;
    for (const name in fields) if (reserved.has(name)) return undefined;
    const line = `${head}${alwaysText}${membersOf(fields)}}`;
    return SUSPICIOUS.test(line) ? undefined : line;
  };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

/** The texts of times, cached because many lines have the same millisecond. */
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

/** The members as JSON, each after a comma. */
function membersOf(fields: Fields): string {
  const text = JSON.stringify(fields);
  return text === '{}' ? '' : `,${text.slice(1, -1)}`;
}

/** Whether JSON can write the value unchanged: texts, numbers, lists of texts, and objects of these. */
function isPlain(fields: Fields, isMember = false): boolean {
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === 'bigint') return false;
    if (typeof value !== 'object' || value === null) continue;
    const isKnown = Array.isArray(value)
      ? value.every((entry) => typeof entry === 'string')
      : !isMember && Object.getPrototypeOf(value) === Object.prototype && isPlain(value as Fields, true);
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

/** Every match of the patterns above contains one of these, and nearly no other text does. */
const SUSPICIOUS = /sk-|[bB][eE][aA][rR][eE][rR]|:\/\//;

/** The maximum depth: a getter may return new objects forever. */
const MAX_DEPTH = 12;

/**
 * The value in a form that JSON can write, without secrets: errors with their causes, exact big integers, and the word
 * for a cycle in place of the cycle.
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
