// Checks of rows from a database: its owner may have written anything into them, and the reconciler plans with them.
import * as z from 'zod';
import { DatabaseUnreachable } from '#core/ports/backends.ts';

/** Milliseconds of a `timestamptz`, in the range of JavaScript dates. */
const Instant = z.number().min(-8.64e15).max(8.64e15);
const Window = z.object({ limit: z.string(), duration: z.string(), sinceGeneration: z.number().optional() });
const Digest = z.object({
  budget: Window.extend({ alignment: z.string() }).optional(),
  furtherBudgets: z.array(Window.extend({ scopeId: z.string(), model: z.string().optional() })).optional(),
  retained: z.string().optional(),
  secretName: z.string().optional(),
});

/** The part of a claim that the reconciler reads. */
export const ClaimRowSchema = z.object({
  scopeId: z.string(),
  kind: z.enum(['key', 'user', 'team']),
  alias: z.string(),
  uid: z.string(),
  namespace: z.string(),
  name: z.string(),
  anchor: Instant,
  bytes: z.number(),
  values: z.array(
    z.object({ hash: z.string(), createdAt: Instant, notAfter: Instant.optional(), rotation: z.string().optional() }),
  ),
  policy: Digest.nullable(),
  previousHolders: z.array(z.string()).nullable(),
  isOwnerGone: z.boolean(),
});

const Place = z.object({ namespace: z.string(), name: z.string() });

export const StateRowSchema = z.object({
  now: Instant,
  isOpen: z.boolean(),
  hasClaims: z.boolean(),
  predecessor: z.object({ uid: z.string(), since: Instant }).nullable(),
  place: Place.nullable(),
});

export const InstanceRowSchema = Place.extend({ uid: z.string() });

/** Returns the same objects, which share parts. Throws DatabaseUnreachable for a row that no operator wrote. */
export function checkRows<Row>(schema: z.ZodType, rows: ReadonlyArray<Row>): ReadonlyArray<Row> {
  for (const row of rows) {
    const [issue] = schema.safeParse(row).error?.issues ?? [];
    if (issue !== undefined)
      throw new DatabaseUnreachable(
        `PostgreSQL has a row that this operator did not write (${issue.path.join('.')}: ${issue.message}): restore a backup of the row, or use an empty database`,
      );
  }
  return rows;
}
