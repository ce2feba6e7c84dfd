// Formats and patterns of texts.
import { RE2JS } from 're2js';

const formats: Readonly<Record<string, (text: string) => boolean>> = {
  byte: (text) => text !== '' && /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0,
  'date-time': (text) =>
    /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) &&
    isDay(text.slice(0, 10)) &&
    !Number.isNaN(Date.parse(text)),
};

/** True for any other format: it is ignored, as the real server ignores those that it does not know. */
export function formatFits(format: string, text: string): boolean {
  return Object.hasOwn(formats, format) ? formats[format]?.(text) === true : true;
}

function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

const compiled = new Map<string, RE2JS>();

/**
 * A pattern of a CRD or a CEL `matches`, read as Go reads it (RE2). Throws an error with Go's words for one that cannot
 * be read.
 */
export function goPattern(pattern: string): RE2JS {
  const expression = compiled.get(pattern) ?? RE2JS.compile(pattern);
  compiled.set(pattern, expression);
  return expression;
}
