// Who wants what of which object?
import type { Refusal } from '../refusal.ts';
import { invalid } from '../refusal.ts';
import type { Resource } from '../resources/resource.ts';
import type { Cause } from '../schema/cause.ts';
import { notSupported } from '../schema/refusals.ts';

export type User = {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
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
  readonly userAgent: string;
  readonly dryRun: boolean;
  readonly fieldValidation: 'Strict' | 'Warn' | 'Ignore';
  /** Says something to the caller next to the answer. */
  warn(text: string): void;
  readonly signal: AbortSignal;
};

type Options = Pick<ApiRequest, 'dryRun' | 'fieldValidation'>;

/** Reads `dryRun` and `fieldValidation`; an unknown value is refused, never ignored. */
export function writeOptions(query: URLSearchParams, verb: Verb): Options | Refusal {
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
export function wrongOption(kind: string, cause: Cause): Refusal {
  return invalid({ group: 'meta.k8s.io', plural: kind, kind }, '', [cause]);
}

/** The manager that managedFields name: given, or the first word of the client's own name. */
export function fieldManagerOf({ query, userAgent }: Pick<ApiRequest, 'query' | 'userAgent'>): string {
  return query.get('fieldManager') || userAgent.split('/')[0]?.slice(0, 128) || 'unknown';
}
