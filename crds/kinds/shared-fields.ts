// Pieces that several kinds share: texts, names, amounts, references, limits, conditions.
import * as z from 'zod';
import { inAll, listBy, mapOf, setOf, text, withRule } from '../validation/rule.ts';
import {
  DURATION,
  FREE_TEXT,
  isDurationInCel,
  MAX_FREE_TEXT,
  MAX_SECONDS,
  MONEY,
  secondsInCel,
  secondsOf,
} from '../validation/units.ts';

/** A string of ASCII characters that a pattern describes; a longer one never meets the pattern. */
export const matching = (pattern: RegExp, max: number, message: string) =>
  z.string().max(max, { abort: true }).regex(pattern, message);

/** The name of an object, in the form that Kubernetes requires of most objects. */
export const Name = matching(
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/u,
  253,
  'must consist of lower-case letters, digits, `-` and `.`, with a letter or digit at both ends',
);

/** A DNS label: up to 63 characters without a dot. */
export const DnsLabel = matching(
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/u,
  63,
  'must consist of lower-case letters, digits and `-`, with a letter or digit at both ends',
);

export const Namespace = DnsLabel;

/** The name of a key of a Secret or a ConfigMap. */
export const SecretKeyName = matching(/^[-._a-zA-Z0-9]+$/u, 253, 'must consist of letters, digits, `-`, `_` and `.`');

/** Free text of up to 256 characters: blanks inside but not at the ends, no control characters. */
export const FreeText = text(MAX_FREE_TEXT).regex(
  FREE_TEXT,
  'must be 1 to 256 visible characters, without a blank at its ends and without control characters',
);

/** The base address of a gateway. */
export const Address = text(2048).regex(
  /^https?:\/\/[^\p{Z}\p{C}/?#@]+(\/[^\p{Z}\p{C}?#]*)?$/u,
  'must be an address like "https://host/path", without a query and without a user name or password',
);

/** A number and a unit: `s`, `m`, `h`, `d`, `w`, `mo` (30 days); at most 36,525 days. */
export const Duration = withRule(
  matching(DURATION, 16, 'must be a number from 1 and a unit (s, m, h, d, w or mo), e.g. "30d"'),
  {
    id: 'DurationTooLong',
    cel: `!${isDurationInCel('self')} || ${secondsInCel('self')} <= ${MAX_SECONDS}`,
    isMet: (self) => secondsOf(self) <= MAX_SECONDS,
    message: 'must be at most 36525 days; write a shorter duration',
  },
);

/** Dollars as a decimal string: `12`, `0.5`, `12.50`; at most 1,000,000,000 and nine decimals (a nano-dollar). */
export const Money = matching(
  MONEY,
  20,
  'must be a decimal number of dollars from 0 to 1000000000, with at most nine decimals, e.g. "12" or "12.50"',
);

/** A whole number. */
export const integer = (min: number, max: number) => z.int().min(min).max(max);

/** One of several words; the first is the default. */
export const choice = <const T extends readonly [string, ...string[]]>(...words: T) => z.enum(words).default(words[0]);

/** A number of requests, tokens or attempts: an integer from 1. */
export const Limit = integer(1, 1_000_000_000_000);

/** A reference to an object of the same namespace. */
export const LocalRef = z.object({ name: Name.describe('Name of the object, in the same namespace.') });
export type LocalRef = z.output<typeof LocalRef>;

/** The instance that a key, a user or a team belongs to. */
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
export const ModelNames = inAll(32_768, setOf(FreeText, 512));

export const modelNames = (who: string) =>
  ModelNames.default([]).describe(
    `The models that the ${who} may use, as exact \`modelName\`s of the instance. Empty means all.`,
  );

const LABEL =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*[/])?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const labelNames = { pattern: LABEL, max: 317, form: 'like "team" or "example.com/team"' };

export const Labels = mapOf(
  matching(/^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/u, 63, 'must consist of letters, digits, `-`, `_` and `.`'),
  labelNames,
);
export const Annotations = inAll(16_384, mapOf(text(4096), labelNames));

/** The limits that keys, users and teams have in common. */
export const limits = {
  rpmLimit: Limit.optional().describe(
    'Maximum requests in a minute of the clock; in any 60 seconds at most twice as many. Default: no limit.',
  ),
  tpmLimit: Limit.optional().describe(
    'Maximum tokens (prompt and completion) in a minute of the clock; in any 60 seconds at most twice as many. A request counts its expected tokens when it begins, and the used ones when it ends. Default: no limit.',
  ),
  maxParallelRequests: Limit.optional().describe('Maximum requests in flight at the same time. Default: no limit.'),
};

export const BUDGET_WINDOWS = ['Rolling', 'Calendar'] as const;

const CALENDAR =
  'in UTC: `1d` at midnight, `1h` on the hour, `1w` on Monday, `1mo` on the first of the month. Other lengths follow one after the other from 1970-01-01T00:00Z (`36h`, `7d`, `30d`), weeks from Monday 1970-01-05 (`2w`), months from January 1970 (`3mo`: quarters).';

/** The time zone of `Calendar` windows. */
export const budgetTimeZone = matching(
  /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+){0,2}$/u,
  64,
  'must be the name of a time zone in the IANA database, e.g. "Europe/Berlin"',
)
  .optional()
  .describe(
    'The time zone of `Calendar` windows of days, weeks and months, e.g. `Europe/Berlin`: they begin at midnight there. Default: UTC.',
  );

/** The description of `budgetWindow`. `start`: where `Rolling` windows begin. */
export const budgetWindowText = (who: string, start = `the creation of the ${who}`): string =>
  `\`Rolling\` windows are counted from ${start}. \`Calendar\` windows begin at the same time for all ${who}s, ${CALENDAR}`;

/** How the windows of a budget are aligned. */
export const budgetWindows = (who: 'key' | 'user' | 'team') => ({
  budgetWindow: choice(...BUDGET_WINDOWS).describe(budgetWindowText(who)),
  budgetTimeZone,
});

/** Fields that a User and a Team have in common: an instance, and a budget that all their keys spend together. */
export const scopeSpec = (who: 'user' | 'team') => ({
  connectionRef: ConnectionRef.describe(`The instance that the ${who} belongs to.`),
  models: modelNames(who),
  maxBudget: Money.optional().describe(
    `Maximum dollars that all keys of the ${who} together may spend in one window. Default: no limit.`,
  ),
  budgetDuration: Duration.optional().describe(
    'Length of the budget window, e.g. `30d`. `mo` is 30 days, or a calendar month with `budgetWindow: Calendar`. Default: one that never ends.',
  ),
  ...budgetWindows(who),
  blocked: z.boolean().default(false).describe(`While true no key of the ${who} works.`),
  ...limits,
});

/** A date in a status, RFC 3339 in UTC. */
export const Timestamp = z.string().max(64).meta({ format: 'date-time' });

export const Condition = z.object({
  type: z.string().min(1).max(316).describe('What the condition is about, e.g. `Ready`.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it is true.'),
  reason: z.string().min(1).max(1024).describe('Why, in one CamelCase word.'),
  message: z.string().max(32_768).describe('Why, in a sentence for people.'),
  lastTransitionTime: Timestamp.describe('When `status` last changed, RFC 3339.'),
  observedGeneration: z.int().min(0).optional().describe('The `metadata.generation` that was validated.'),
});
export type Condition = z.output<typeof Condition>;

/** Fields of every status. */
export const observedFields = {
  conditions: listBy('type', Condition, 32).optional().describe('What was observed, one condition for each type.'),
  observedGeneration: z.int().min(0).optional().describe('The `metadata.generation` that this status is about.'),
};

/** Dollars in a status: a decimal string at full precision, which a limit does not bound. */
export const Spend = z.string().max(40);

/** Fields that the status of a User and of a Team have in common. */
export const scopeStatus = (who: 'user' | 'team') => ({
  ...observedFields,
  currentSpend: Spend.optional().describe(`Dollars spent in the current window by all keys of the ${who}.`),
  budgetResetDate: Timestamp.optional().describe('When the current budget window ends, RFC 3339.'),
});
