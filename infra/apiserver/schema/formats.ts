// Formats of texts that are checked. Any other format of a schema is ignored, as the API server ignores those it does not know.
import { isIPv4 } from 'node:net';

const formats: Readonly<Record<string, (text: string) => boolean>> = {
  byte: (text) => text !== '' && /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0,
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDay(text),
  'date-time': (text) =>
    /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) &&
    isDay(text.slice(0, 10)) &&
    !Number.isNaN(Date.parse(text)),
  // What Go's `time.ParseDuration` reads.
  duration: (text) => /^[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$|^[+-]?0$/.test(text),
  email: (text) => /^(?:[^<>"]*<)?[^\s@<>,;:()[\]\\]+@[^\s@<>,;:()[\]\\]+>?$/.test(text),
  ipv4: isIPv4,
  ipv6: (text) => text.includes(':') && /^[0-9a-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]/`),
  uri: (text) =>
    /^\/[^\s]*$/.test(text) || (/^[a-z][a-z0-9+.-]*:[^\s]+$/i.test(text) && !/%(?![0-9a-f]{2})/i.test(text)),
  uuid: (text) => /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text),
};

export function formatFits(format: string, text: string): boolean {
  return Object.hasOwn(formats, format) ? formats[format]?.(text) === true : true;
}

function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}
