// Does a text fit a `format`?
import { wordedDuration } from './worded-duration.ts';

const label = '[a-zA-Z0-9\\p{S}\\p{L}]';
const hostname = new RegExp(
  `^(${label}((-?${label}{0,62})?)|(${label}((([a-zA-Z0-9-]|\\p{S}|\\p{L}){0,61}${label})?)(\\.))+([a-zA-Z\\p{L}]){2,63})$`,
  'u',
);
/** What Go's `time.ParseDuration` reads. */
export const goDuration = /^[+-]?((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+$|^[+-]?0$/;
const octet = '(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const ipv4 = new RegExp(`^${octet}(\\.${octet}){3}$`);

/** The formats that the API server knows, as it reads them (go-openapi's strfmt). */
const formats: Readonly<Record<string, (text: string) => boolean>> = {
  byte: (text) => text !== '' && /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0,
  cidr: isCidr,
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDay(text),
  'date-time': (text) =>
    /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) &&
    isDay(text.slice(0, 10)) &&
    !Number.isNaN(Date.parse(text)),
  duration: (text) => goDuration.test(text) || wordedDuration(text) !== undefined,
  email: (text) => /^(?:[^<>"]*<)?[^\s@<>,;:()[\]\\]+@[^\s@<>,;:()[\]\\]+>?$/.test(text),
  hexcolor: (text) => /^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/.test(text),
  hostname: (text) => hostname.test(text) && text.split('.').every((part) => part.length < 64),
  ipv4: (text) => ipv4.test(text),
  ipv6: isIpv6,
  mac: (text) => /^[0-9a-f]{2}([:-]?[0-9a-f]{2}){5}$/i.test(text),
  rgbcolor: (text) => /^rgb\(\s*\d+%?\s*,\s*\d+%?\s*,\s*\d+%?\s*\)$/.test(text),
  uri: (text) =>
    /^\/[^\s]*$/.test(text) || (/^[a-z][a-z0-9+.-]*:[^\s]+$/i.test(text) && !/%(?![0-9a-f]{2})/i.test(text)),
  uuid: (text) => /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text),
  uuid4: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i.test(text),
};

/** True for a format that is not known: the API server ignores those too. */
export function formatFits(format: string, text: string): boolean {
  return Object.hasOwn(formats, format) ? formats[format]?.(text) === true : true;
}

function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

function isIpv6(text: string): boolean {
  return text.includes(':') && /^[0-9a-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]/`);
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  if (rest.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(bits)) return false;
  return (ipv4.test(address) && Number(bits) <= 32) || (isIpv6(address) && Number(bits) <= 128);
}
