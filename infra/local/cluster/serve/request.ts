// Who wants what of which object?
import type { Refusal } from '../refusal.ts';
import { badRequest } from '../refusal.ts';
import type { Resource } from '../resources/resource.ts';

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
export function writeOptions(query: URLSearchParams): Options | Refusal {
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  if (dryRun.some((value) => value !== 'All')) {
    return badRequest(`invalid dryRun: Unsupported value: ${JSON.stringify(dryRun[0])}: supported values: "All"`);
  }
  const validation = query.get('fieldValidation') || 'Warn';
  if (validation !== 'Strict' && validation !== 'Warn' && validation !== 'Ignore') {
    const supported = '"Ignore", "Strict", "Warn"';
    return badRequest(
      `invalid fieldValidation: Unsupported value: ${JSON.stringify(validation)}: supported values: ${supported}`,
    );
  }
  return { dryRun: dryRun.length > 0, fieldValidation: validation };
}

/** The manager that managedFields name: given, or the first word of the client's own name. */
export function fieldManagerOf({ query, userAgent }: Pick<ApiRequest, 'query' | 'userAgent'>): string {
  return query.get('fieldManager') || userAgent.split('/')[0]?.slice(0, 128) || 'unknown';
}
