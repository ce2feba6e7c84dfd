// Which pieces do several kinds share: names, texts, money, durations, references, limits, conditions?
import * as z from 'zod';
import { asSet, mapBy } from './list-type.ts';
import { ruled } from './rule.ts';

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/u;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/u;
const SECRET_ENTRY = /^[-._a-zA-Z0-9]+$/u;
const FREE_TEXT = /^[^\p{Z}\p{C}]([^\p{Cc}\p{Zl}\p{Zp}]*[^\p{Z}\p{C}])?$/u;
const MONEY = /^((0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?|1000000000(\.0{1,9})?)$/u;
const DURATION = /^[1-9][0-9]*(s|m|h|d|w|mo)$/u;

/** Longest duration: 36,525 days. */
const MAX_SECONDS = 36_525 * 86_400;
const SECONDS_PER_UNIT: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
  mo: 2_592_000,
};

/** A string of at most `max` characters as Kubernetes counts them: code points, where JavaScript counts UTF-16 units. */
export const text = (max: number) =>
  z
    .string()
    .refine((value) => [...value].length <= max, `is longer than ${max} characters`)
    .meta({ maxLength: max });

/** The name of an object: what Kubernetes lets most objects be called. */
export const Name = z
  .string()
  .regex(
    DNS_SUBDOMAIN,
    'is not a name: write lower-case letters, digits, `-` and `.`, with a letter or digit at both ends',
  )
  .max(253);

export const Namespace = z
  .string()
  .regex(DNS_LABEL, 'is not a namespace: write lower-case letters, digits and `-`, with a letter or digit at both ends')
  .max(63);

/** The name of a data entry of a Secret or a ConfigMap. */
export const SecretEntry = z
  .string()
  .regex(SECRET_ENTRY, 'is not the name of a data entry: write letters, digits, `-`, `_` and `.`')
  .max(253);

/** Free text of up to 256 characters: blanks inside but not at the ends, no control characters. */
export const FreeText = text(256).regex(
  FREE_TEXT,
  'is empty, begins or ends with a blank, or holds a control character: write 1 to 256 visible characters',
);

/** Dollars as a decimal string: `12`, `0.5`, `12.50`; at most 1,000,000,000 and nine decimals (a nano-dollar). */
export const Money = z
  .string()
  .regex(
    MONEY,
    'is not an amount of dollars: write it like "12", "0.5" or "12.50", without a sign, with at most nine decimals, at most "1000000000"',
  )
  .max(20);

/** Exact nano-dollars of a well-formed amount. */
export function nanoOf(money: string): bigint {
  const [whole = '0', fraction = ''] = money.split('.');
  return BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
}

/** CEL: the same, of the well-formed amount that the expression `money` gives. */
export const nanoInCel = (money: string) =>
  `(${money}.contains('.') ? int(${money}.split('.')[0]) * 1000000000 + int((${money}.split('.')[1] + '000000000').substring(0, 9)) : int(${money}) * 1000000000)`;

/** Seconds of a well-formed duration. */
export function secondsOf(duration: string): number {
  const [, count, unit] = /^([0-9]+)([a-z]+)$/.exec(duration) ?? [];
  return Number(count ?? 0) * (SECONDS_PER_UNIT[unit ?? ''] ?? 0);
}

/** CEL: the same, of the well-formed duration that the expression `duration` gives. */
export const secondsInCel = (duration: string) =>
  `(int(${duration}.substring(0, size(${duration}) - (${duration}.endsWith('mo') ? 2 : 1))) * ` +
  `(${duration}.endsWith('mo') ? 2592000 : ${duration}.endsWith('w') ? 604800 : ${duration}.endsWith('d') ? 86400 : ` +
  `${duration}.endsWith('h') ? 3600 : ${duration}.endsWith('m') ? 60 : 1))`;

/** CEL: whether it is a duration at all. Where it is not, the schema's pattern says so and a rule stays silent. */
export const isDurationInCel = (duration: string) => `${duration}.matches('${DURATION.source}')`;

/** CEL: whether it is an amount of money at all. */
export const isMoneyInCel = (money: string) => `${money}.matches('^[0-9]{1,10}([.][0-9]{1,9})?$')`;

/** A number and a unit: `s`, `m`, `h`, `d`, `w`, `mo` (30 days); at most 36,525 days. */
export const Duration = ruled(
  z
    .string()
    .regex(DURATION, 'is not a duration: write a number from 1 and one of the units s, m, h, d, w, mo, e.g. "30d"')
    .max(16),
  [
    {
      id: 'DurationTooLong',
      cel: `!${isDurationInCel('self')} || ${secondsInCel('self')} <= ${MAX_SECONDS}`,
      message: 'is longer than 36525 days: write a shorter duration',
      holds: (self) => secondsOf(self) <= MAX_SECONDS,
    },
  ],
);

/** A map from text to `values`: so many entries, and names of a form that only a rule can say (a schema cannot). */
export function mapOf<V extends z.ZodType>(values: V, names: MapNames) {
  const { min = 0, max = 64, pattern, longest } = names;
  const map = z
    .record(z.string(), values)
    .refine((entries) => Object.keys(entries).length >= min, `needs at least ${min} entry`)
    .refine((entries) => Object.keys(entries).length <= max, `has more than ${max} entries`)
    .meta(min > 0 ? { minProperties: min, maxProperties: max } : { maxProperties: max });
  const form = pattern === undefined ? '' : ` && name.matches('${pattern.source}')`;
  return ruled(map, [
    {
      id: 'EntryName',
      cel: `self.all(name, size(name) >= 1 && size(name) <= ${longest}${form})`,
      message: `has an entry with a bad name: ${names.form}`,
      holds: (self) =>
        Object.keys(self).every(
          (name) => name.length >= 1 && [...name].length <= longest && (pattern === undefined || pattern.test(name)),
        ),
    },
  ]);
}

interface MapNames {
  readonly min?: number;
  readonly max?: number;
  readonly pattern?: RegExp;
  readonly longest: number;
  /** What a good name looks like, for people. */
  readonly form: string;
}

const QUALIFIED_NAME = {
  pattern: /^([a-z0-9][-a-z0-9.]*[.][-a-z0-9.]*[a-z0-9][/])?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
  longest: 317,
  form: 'write it like "team" or "example.com/team"',
};

export const Labels = mapOf(
  z
    .string()
    .regex(
      /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/u,
      'is not a label value: write letters, digits, `-`, `_` and `.`',
    )
    .max(63),
  QUALIFIED_NAME,
);
export const Annotations = mapOf(text(4096), QUALIFIED_NAME);

/** How many requests, tokens or attempts: an integer from 1. */
export const Limit = z.int().min(1).max(1_000_000_000_000);

/** A reference to an object of the same namespace. */
export const LocalRef = z.object({
  name: Name.describe('Name of the object, in the same namespace.'),
});
export type LocalRef = z.output<typeof LocalRef>;

/** Which instance a key, a user or a team belongs to. */
export const ConnectionRef = z.object({
  instanceRef: z
    .object({
      name: Name.describe('Name of the `GatewayInstance`.'),
      namespace: Namespace.describe('Namespace of the `GatewayInstance`.'),
    })
    .describe('The `GatewayInstance`.'),
});
export type ConnectionRef = z.output<typeof ConnectionRef>;

/** Model names; an empty list means every model of the instance. */
export const ModelNames = z.array(FreeText).max(512).meta(asSet);

/** The limits that keys, users and teams have in common. */
export const limits = {
  rpmLimit: Limit.optional().describe('Requests per minute, at most. Default: no limit.'),
  tpmLimit: Limit.optional().describe('Tokens (prompt and completion) per minute, at most. Default: no limit.'),
  maxParallelRequests: Limit.optional().describe('Requests in flight at the same time, at most. Default: no limit.'),
};

export const Condition = z.object({
  type: z.string().min(1).max(316).describe('What the condition is about, e.g. `Ready`.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  reason: z.string().min(1).max(1024).describe('Why, in one CamelCase word.'),
  message: z.string().max(32_768).describe('Why, in a sentence for people.'),
  lastTransitionTime: z
    .string()
    .max(64)
    .meta({ format: 'date-time' })
    .describe('When `status` last changed, RFC 3339.'),
  observedGeneration: z.int().min(0).optional().describe('The `metadata.generation` that was judged.'),
});
export type Condition = z.output<typeof Condition>;

/** What every status has. */
export const observed = {
  conditions: z
    .array(Condition)
    .max(32)
    .meta(mapBy('type'))
    .optional()
    .describe('What was observed, one entry a type.'),
  observedGeneration: z.int().min(0).optional().describe('The `metadata.generation` that this status is about.'),
};

/** A date in a status, RFC 3339 in UTC. */
export const Timestamp = z.string().max(64).meta({ format: 'date-time' });

/** Dollars in a status: a decimal string at full precision, which a limit does not bound. */
export const Spend = z.string().max(40);
