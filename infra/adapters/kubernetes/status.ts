// What does a refusal of the API server mean to us?

import type { WriteRefusal } from '#core/ports/cluster.ts';
import { isMap } from '#crds/shapes.ts';

/** The loose part of a `Status` that we read. */
export interface Status {
  readonly kind: 'Status';
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: ReadonlyArray<{ readonly reason?: string; readonly field?: string }> };
}

/** The Status in a reply, or undefined for what is none (a proxy's page, a path that is not served). */
export function readStatus(text: string): Status | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return isStatus(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

const isStatus = (json: unknown): json is Status =>
  isMap(json) &&
  json.kind === 'Status' &&
  isMaybeText(json.message) &&
  isMaybeText(json.reason) &&
  (json.details === undefined || (isMap(json.details) && areCauses(json.details.causes)));

const areCauses = (causes: unknown): boolean =>
  causes === undefined ||
  (Array.isArray(causes) && causes.every((one) => isMap(one) && isMaybeText(one.reason) && isMaybeText(one.field)));

const isMaybeText = (value: unknown): boolean => value === undefined || typeof value === 'string';

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
