// What does a refusal of the API server mean to us?
import * as z from 'zod';
import type { WriteRefusal } from '../../../functions/core/ports/cluster.ts';

/** The loose part of a `Status` that we read. */
const Status = z.object({
  kind: z.literal('Status'),
  message: z.string().optional(),
  reason: z.string().optional(),
  details: z
    .object({
      causes: z.array(z.object({ reason: z.string().optional(), field: z.string().optional() })).optional(),
    })
    .optional(),
});
export type Status = z.infer<typeof Status>;

/** The Status in a reply, or undefined for what is none (a proxy's page, a path that is not served). */
export function readStatus(text: string): Status | undefined {
  try {
    return Status.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/**
 * | HTTP | says | refusal |
 * |---|---|---|
 * | 404 | `NotFound` | gone |
 * | 409 | `AlreadyExists` | exists |
 * | 409 | anything else | conflict |
 * | 403 | a cause `NamespaceTerminating` | terminating |
 * | 401, 403 | anything else | forbidden |
 * | 422 | a cause at `metadata.uid` | conflict: our precondition, another object has the name by now |
 * | 400, 413, 422 | anything else | invalid |
 */
export function toRefusal(httpStatus: number, status: Status | undefined): WriteRefusal | undefined {
  const causes = status?.details?.causes ?? [];
  switch (httpStatus) {
    case 404:
      return status?.reason === 'NotFound' ? 'gone' : undefined;
    case 409:
      return status?.reason === 'AlreadyExists' ? 'exists' : 'conflict';
    case 401:
    case 403:
      return causes.some(({ reason }) => reason === 'NamespaceTerminating') ? 'terminating' : 'forbidden';
    case 422:
      return causes.some(({ field }) => field === 'metadata.uid') ? 'conflict' : 'invalid';
    case 400:
    case 413:
      return 'invalid';
    default:
      return undefined;
  }
}
