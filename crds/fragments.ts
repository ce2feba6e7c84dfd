// Which pieces do several kinds share: names, texts, references, limits, conditions?
import * as z from 'zod';
import { asSet, mapBy } from './list-type.ts';
import { FREE_TEXT, isWithin, LONGEST_FREE_TEXT } from './within.ts';

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/u;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/u;
const SECRET_ENTRY = /^[-._a-zA-Z0-9]+$/u;

/** A string of at most `max` characters as Kubernetes counts them: code points, where JavaScript counts UTF-16 units. */
export const text = (max: number) =>
  z
    .string()
    .refine((value) => isWithin(max, value), { error: `is longer than ${max} characters; shorten it`, abort: true })
    .meta({ maxLength: max });

/** The name of an object: what Kubernetes lets most objects be called. */
export const Name = z
  .string()
  .regex(
    DNS_SUBDOMAIN,
    'is not a name; write lower-case letters, digits, `-` and `.`, with a letter or digit at both ends',
  )
  .max(253);

export const Namespace = z
  .string()
  .regex(DNS_LABEL, 'is not a namespace; write lower-case letters, digits and `-`, with a letter or digit at both ends')
  .max(63);

/** The name of a data entry of a Secret or a ConfigMap. */
export const SecretEntry = z
  .string()
  .regex(SECRET_ENTRY, 'is not the name of a data entry; write letters, digits, `-`, `_` and `.`')
  .max(253);

/** Free text of up to 256 characters: blanks inside but not at the ends, no control characters. */
export const FreeText = text(LONGEST_FREE_TEXT).regex(
  FREE_TEXT,
  'is empty, begins or ends with a blank, or holds a control character; write 1 to 256 visible characters',
);

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
  rpmLimit: Limit.optional().describe('Requests in any minute, at most. Default: no limit.'),
  tpmLimit: Limit.optional().describe(
    'Tokens (prompt and completion) in any minute, at most; expected when a request begins, counted as used when it ends. Default: no limit.',
  ),
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
