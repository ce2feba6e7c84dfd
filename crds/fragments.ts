// Which pieces do several kinds share: names, texts, money, durations, references, limits, conditions?
import * as z from 'zod';
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
export const Name = z.string().regex(DNS_SUBDOMAIN).max(253);
export const Namespace = z.string().regex(DNS_LABEL).max(63);
export const SecretEntry = z.string().regex(SECRET_ENTRY).max(253);

/** Free text of up to 256 characters: blanks inside but not at the ends, no control characters. */
export const FreeText = text(256).regex(FREE_TEXT);

/** Dollars as a decimal string: `12`, `0.5`, `12.50`; at most 1,000,000,000 and nine decimals (a nano-dollar). */
export const Money = z.string().regex(MONEY).max(20);

/** CEL: the seconds of the duration that `self` is, or that a member is. */
const seconds = (value: string) =>
  `int(${value}.find('^[0-9]+')) * (${value}.endsWith('mo') ? 2592000 : ${value}.endsWith('w') ? 604800 : ` +
  `${value}.endsWith('d') ? 86400 : ${value}.endsWith('h') ? 3600 : ${value}.endsWith('m') ? 60 : 1)`;

/** A number and a unit: `s`, `m`, `h`, `d`, `w`, `mo` (30 days). */
export const Duration = ruled(z.string().regex(DURATION).max(16), [
  {
    id: 'DurationTooLong',
    cel: `!self.matches('^[1-9][0-9]*(s|m|h|d|w|mo)$') || ${seconds('self')} <= ${MAX_SECONDS}`,
    message: 'a duration is at most 36525 days',
    holds: (self) => secondsOf(self) <= MAX_SECONDS,
  },
]);

/** Seconds of a well-formed duration, 0 of anything else. */
export function secondsOf(duration: string): number {
  const [, count, unit] = /^([0-9]+)([a-z]+)$/.exec(duration) ?? [];
  return Number(count ?? 0) * (SECONDS_PER_UNIT[unit ?? ''] ?? 0);
}

/** CEL text for the seconds of a well-formed duration. */
export const secondsInCel = seconds;

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
export const ModelNames = z.array(FreeText).max(512).meta({ 'x-kubernetes-list-type': 'set' });

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
    .optional()
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
    .describe('What was observed, one entry a type.'),
  observedGeneration: z.int().min(0).optional().describe('The `metadata.generation` that this status is about.'),
};

/** A date in a status, RFC 3339 in UTC. */
export const Timestamp = z.string().max(64).meta({ format: 'date-time' });

/** Dollars in a status: a decimal string at full precision, which a limit does not bound. */
export const Spend = z.string().max(40);
