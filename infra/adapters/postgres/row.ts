// Checks of rows from a database: its owner may have written anything into them, and the reconciler plans with them.
import * as z from 'zod';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { type Nano, STORED_AMOUNT } from '#core/ports/money.ts';

/** Milliseconds of a `timestamptz`, in the range of JavaScript dates. */
const Instant = z.number().min(-8.64e15).max(8.64e15);
/** A UUID as PostgreSQL writes it. */
export const Uuid = z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
/** An amount as text. Numbers of PostgreSQL may have 131,072 digits. */
export const AmountText = z.string().regex(STORED_AMOUNT);
/** A name, an alias, a uid, a hash or a duration: the longest is an alias of 256 characters. */
const Name = z.string().max(512);
const Window = z.object({ limit: AmountText, duration: Name, sinceGeneration: z.number().optional() });
const Budget = Window.extend({ alignment: Name }).optional();
const Digest = z.object({
  budget: Budget,
  // A VirtualKey has at most 8 further windows and 64 models with a budget.
  furtherBudgets: z
    .array(Window.extend({ scopeId: Name, model: Name.optional() }))
    .max(72)
    .optional(),
  retained: Name.optional(),
  secretName: Name.optional(),
  policyName: Name.optional(),
  perKey: z.object({ budget: Budget }).optional(),
  lastSince: z.number().optional(),
});

/** The part of a claim that the reconciler reads. */
export const ClaimRowSchema = z.object({
  scopeId: Name,
  kind: z.enum(['key', 'user', 'team', 'namespace']),
  alias: Name,
  uid: Name,
  namespace: Name,
  name: Name,
  anchor: Instant,
  bytes: z.number(),
  values: z.array(
    z.object({ hash: z.string(), createdAt: Instant, notAfter: Instant.optional(), rotation: z.string().optional() }),
  ),
  policy: Digest.nullable(),
  previousHolders: z.array(Name).max(16).nullable(),
  isOwnerGone: z.boolean(),
});

const Place = z.object({ namespace: Name, name: Name });

export const StateRowSchema = z.object({
  now: Instant,
  isOpen: z.boolean(),
  hasClaims: z.boolean(),
  predecessor: z.object({ uid: z.string(), since: Instant }).nullable(),
  place: Place.nullable(),
});

export const InstanceRowSchema = Place.extend({ uid: z.string() });

/** The nano-dollars of an amount. Throws DatabaseUnreachable if the text is not an amount. */
export function toNano(text: string): Nano {
  if (!STORED_AMOUNT.test(text)) throw new DatabaseUnreachable(foreign('an amount'));
  return BigInt(text);
}

const foreign = (what: string): string =>
  `PostgreSQL has a row that this operator did not write (${what}): restore a backup of the row, or use an empty database`;

/** Returns the same objects, which share parts. Throws DatabaseUnreachable for a row that no operator wrote. */
export function checkRows<Row>(schema: z.ZodType, rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
  for (const row of rows) {
    const [issue] = schema.safeParse(row).error?.issues ?? [];
    if (issue !== undefined) throw new DatabaseUnreachable(foreign(`${issue.path.join('.')}: ${issue.message}`));
  }
  return rows;
}
