// How does a process say what happened? One JSON line each, without secrets.
import type { Clock, Log } from '#core/ports/clock.ts';

const LEVELS = ['info', 'warn', 'error'] as const;
export type LogLevel = (typeof LEVELS)[number];

interface Deps {
  /** Takes one line, its end included. */
  readonly write: (line: string) => void;
  /** What every line carries, such as the function's name. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** The least that is written; default `info`. */
  readonly level?: LogLevel;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

/** The line is `{"time","level","message",…fields}`. Whatever looks like a key value or a bearer token is blotted out, wherever it stands. */
export function createLog({ write, fields: always = {}, level: least = 'info', clock = Date }: Deps): Log {
  const timeOf = createTimes();
  const inOne = createJoin(always);
  const at = (level: LogLevel): Log[LogLevel] => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) return () => undefined;
    return (message, fields = {}) => {
      const time = timeOf(clock.now());
      const line = inOne(time, level, message, fields);
      if (line !== undefined) return write(line);
      const first = { time, level, message };
      // Named twice: these three come first, and nothing replaces them.
      write(`${toLine({ ...first, ...always, ...fields, ...first })}\n`);
    };
  };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

/** The text of the millisecond that was asked for last: many lines are written in one. */
function createTimes(): (now: number) => string {
  let [last, text] = [Number.NaN, ''];
  return (now) => {
    if (now !== last) [last, text] = [now, new Date(now).toISOString()];
    return text;
  };
}

type Join = (time: string, level: LogLevel, message: string, fields: object) => string | undefined;

/** Most lines: no field has the name of another, and JSON says all of it by itself. What comes with every line is a text already. */
function createJoin(always: Readonly<Record<string, unknown>>): Join {
  const { time: _time, level: _level, message: _message, ...rest } = always;
  const names = { time: '', level: '', message: '', ...rest };
  const more = isPlain(rest) ? JSON.stringify(rest).slice(1, -1) : undefined;
  const headOf = createHeads(more ? `,${more}` : '');
  return (time, level, message, fields) => {
    if (more === undefined || SUSPICIOUS.test(message)) return undefined;
    for (const name in fields) if (name in names) return undefined;
    if (!isPlain(fields)) return undefined;
    const json = JSON.stringify(fields);
    if (SUSPICIOUS.test(json) || SUSPICIOUS.test(more)) return undefined;
    return `${headOf(time, level, message)}${json === '{}' ? '' : ','}${json.slice(1)}\n`;
  };
}

/** How a line begins: as the one before, where that said the same in the same millisecond. */
function createHeads(more: string): (time: string, level: LogLevel, message: string) => string {
  let last = { time: '', level: '', message: '', head: '' };
  return (time, level, message) => {
    if (time !== last.time || level !== last.level || message !== last.message) {
      const head = `{"time":"${time}","level":"${level}","message":${JSON.stringify(message)}${more}`;
      last = { time, level, message, head };
    }
    return last.head;
  };
}

/** Most lines are short and harmless, which their JSON shows: it escapes nothing that `SUSPICIOUS` looks for. */
function toLine(fields: Readonly<Record<string, unknown>>): string {
  if (!isPlain(fields)) return JSON.stringify(toPlain(fields));
  const line = JSON.stringify(fields);
  return SUSPICIOUS.test(line) ? JSON.stringify(toPlain(fields)) : line;
}

/** Fields of a line, and their fields: deeper ones are rare, and may be a cycle. */
const PLAIN_DEPTH = 2;

/** Whether JSON says all of it by itself. */
function isPlain(fields: object, depth = 1): boolean {
  for (const name in fields) {
    const value: unknown = fields[name as keyof typeof fields];
    if (typeof value === 'bigint' || typeof value === 'function') return false;
    if (typeof value !== 'object' || value === null) continue;
    const isList = Array.isArray(value) && value.every((entry) => typeof entry === 'string');
    if (isList) continue;
    if (depth === PLAIN_DEPTH || Object.getPrototypeOf(value) !== Object.prototype || !isPlain(value, depth + 1))
      return false;
  }
  return true;
}

/** Key values of ours and of most providers (`sk-…`, `sk-proj-…`), whatever follows `Bearer`, and passwords in addresses. */
export function redact(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return text
    .replace(/sk-[0-9A-Za-z]{20,}|\bsk-[0-9A-Za-z_-]{20,}/g, 'sk-[redacted]')
    .replace(/\b(bearer)(\s+)[^\s"'\\,;]+/gi, '$1$2[redacted]')
    .replace(/(:\/\/[^\s/:@]*):[^\s/@]+@/g, '$1:[redacted]@');
}

/** What each of the patterns above needs to match at all: nearly every text is seen through at once. */
const SUSPICIOUS = /sk-|bearer|:\/\//i;

/** Deeper than this nobody reads, and a getter that makes new objects for ever ends here. */
const DEPTH = 12;

/** The same as JSON can say it, without secrets: errors with their causes, exact big integers, cycles named instead of followed. */
function toPlain(value: unknown, above: ReadonlyArray<object> = []): unknown {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '[cycle]';
  if (above.length === DEPTH) return '[deep]';
  const inner = (member: unknown) => toPlain(member, [...above, value]);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof Error) return inner({ ...errorParts(value) });
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return [...value].map(inner);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [redact(name), inner(member)]));
}

function errorParts(error: Error): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const code = 'code' in error ? error.code : undefined;
  return { name, message, code, stack, cause };
}
