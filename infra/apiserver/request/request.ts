// One request on one resource, and the options that it carries.
import { type ApiError, invalid } from '../api-error.ts';
import type { Resource } from '../resource.ts';
import { type Cause, notSupported } from '../schema/field-errors.ts';

export type User = {
  readonly username: string;
  readonly groups: readonly string[];
};

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

/** One request on one resource, after the path, the token and the options were understood. */
export type ApiRequest = {
  readonly verb: Verb;
  readonly resource: Resource;
  /** Absent for cluster-scoped kinds and for lists over all namespaces. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly accept: string;
  readonly body: Buffer;
  readonly user: User;
  readonly dryRun: boolean;
  readonly fieldValidation: 'Strict' | 'Warn' | 'Ignore';
  /** Adds a Warning header to the answer. */
  warn(text: string): void;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  /** When the answer must be there, in milliseconds since 1970. */
  readonly deadline: number;
};

type Options = Pick<ApiRequest, 'dryRun' | 'fieldValidation'>;

/** Reads `dryRun` and `fieldValidation`; an unknown value is rejected, never ignored. */
export function writeOptions(query: URLSearchParams, verb: Verb): Options | ApiError {
  const kind = `${verb.charAt(0).toUpperCase()}${verb.slice(1)}Options`;
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  if (dryRun.some((value) => value !== 'All')) return wrongOption(kind, notSupported('dryRun', dryRun[0], ['All']));
  const fieldValidation = query.get('fieldValidation') || 'Warn';
  if (fieldValidation !== 'Strict' && fieldValidation !== 'Warn' && fieldValidation !== 'Ignore') {
    return wrongOption(kind, notSupported('fieldValidation', fieldValidation, ['Ignore', 'Strict', 'Warn']));
  }
  return { dryRun: dryRun.length > 0, fieldValidation };
}

/** 422 about the options of a request, e.g. `CreateOptions`. */
export function wrongOption(kind: string, cause: Cause): ApiError {
  return invalid({ group: 'meta.k8s.io', plural: kind, kind }, '', [cause]);
}
