// Errors of the API: a Status with a code, a reason and causes.
import { type Cause, joinCauses } from './schema/field-errors.ts';

export type StatusCause = { readonly reason?: string; readonly message?: string; readonly field?: string };

export type Status = {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: Record<string, never>;
  readonly status: 'Failure' | 'Success';
  readonly message?: string;
  readonly reason?: string;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly StatusCause[];
    readonly retryAfterSeconds?: number;
  };
  readonly code?: number;
};

/** An expected failure. Steps return it instead of their result; `isApiError` tells the two apart. */
export class ApiError {
  readonly status: Status;
  constructor(status: Status) {
    this.status = status;
  }
}

export type Outcome<T> = T | ApiError;

export function isApiError(outcome: unknown): outcome is ApiError {
  return outcome instanceof ApiError;
}

type ResourceName = { readonly group: string; readonly plural: string; readonly kind: string };

export function apiError(code: number, reason: string | undefined, message: string, details?: Status['details']) {
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message } as const;
  return new ApiError({ ...status, ...(reason && { reason }), ...(details && { details }), code });
}

/** `widgets.example.com`, or `secrets` for the core group. */
export function qualified(resource: ResourceName): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

export function detailsOf({ group, plural }: ResourceName, name: string): NonNullable<Status['details']> {
  return { ...(name && { name }), ...(group && { group }), kind: plural };
}

export function notFound(resource: ResourceName, name: string): ApiError {
  return apiError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, detailsOf(resource, name));
}

export function noSuchPath(advice?: string): ApiError {
  const words = 'the server could not find the requested resource';
  return apiError(404, 'NotFound', advice === undefined ? words : `${words}: ${advice}`, {});
}

export function alreadyExists(resource: ResourceName, name: string, leaving = false): ApiError {
  const message = `${leaving ? 'object is being deleted: ' : ''}${qualified(resource)} "${name}" already exists`;
  return apiError(409, 'AlreadyExists', message, detailsOf(resource, name));
}

export const objectModified =
  'the object has been modified; please apply your changes to the latest version and try again';

export function conflict(resource: ResourceName, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return apiError(409, 'Conflict', message, detailsOf(resource, name));
}

export function invalid({ group, kind }: ResourceName, name: string, causes: readonly Cause[]): ApiError {
  const what = group === '' ? kind : `${kind}.${group}`;
  return apiError(422, 'Invalid', `${what} "${name}" is invalid: ${joinCauses(causes)}`, {
    ...(name && { name }),
    ...(group && { group }),
    ...(kind && { kind }),
    causes: causes.map(({ field, reason, message }) => ({ reason, message, field })),
  });
}

export function forbidden(
  resource: ResourceName,
  name: string,
  why: string,
  causes?: readonly StatusCause[],
): ApiError {
  const what = name === '' ? qualified(resource) : `${qualified(resource)} "${name}"`;
  const details = { ...detailsOf(resource, name), ...(causes && { causes }) };
  return apiError(403, 'Forbidden', `${what} is forbidden: ${why}`, details);
}

export function badRequest(message: string): ApiError {
  return apiError(400, 'BadRequest', message);
}

export function methodNotAllowed(resource: ResourceName | undefined, message: string): ApiError {
  return apiError(405, 'MethodNotAllowed', message, resource === undefined ? {} : detailsOf(resource, ''));
}

export function internalError(message: string): ApiError {
  return apiError(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] });
}

/** 410: the caller must list anew. */
export function expired(message: string): ApiError {
  return apiError(410, 'Expired', message);
}
