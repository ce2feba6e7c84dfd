// Who are you? A live key, neither expired nor blocked, nor its user or teams.
import type { Failure } from '#core/failure.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { GatewayDeps } from './deps.ts';
import type { FindPolicy } from './policy-cache.ts';

const made: unique symbol = Symbol('Caller');

/** A bearer whose key works. Only `authenticate` makes one. */
export interface Caller extends KeyRecord {
  readonly [made]: true;
}

/** At once where the key is known. */
export type Authenticate = (
  client: Pick<HttpExchange, 'header'>,
) => Result<Caller, Failure> | Promise<Result<Caller, Failure>>;

/** Longer than any key: what is longer is not worth a hash. */
const LONGEST_KEY = 1024;

export function createAuthenticate(deps: Pick<GatewayDeps, 'hash' | 'clock'>, findPolicy: FindPolicy): Authenticate {
  return function authenticate(client) {
    const key = bearerOf(client.header('authorization'));
    if (key === undefined) return err({ code: 'invalid_api_key' });
    const found = findPolicy(deps.hash(key));
    return found instanceof Promise ? found.then(toCaller) : toCaller(found);
  };

  function toCaller(found: Awaited<ReturnType<FindPolicy>>): Result<Caller, Failure> {
    if (!found.ok) return err({ code: 'ledger_unavailable', why: found.failure });
    if (found.value === undefined) return err({ code: 'invalid_api_key' });
    return judge(found.value, deps.clock.now());
  }
}

/** The scheme has no case, and blanks around the key are not part of it (RFC 9110, 11.1). */
function bearerOf(header: string | undefined): string | undefined {
  const [, key] = /^\s*bearer\s+(\S+)\s*$/i.exec(header ?? '') ?? [];
  return key === undefined || key.length > LONGEST_KEY ? undefined : key;
}

function judge(record: KeyRecord, now: number): Result<Caller, Failure> {
  const { key, scopes } = record;
  if (key.expiresAt !== undefined && key.expiresAt <= now) return err({ code: 'expired_api_key', at: key.expiresAt });
  if (key.blocked && key.unpaid !== undefined) return err({ code: 'key_blocked', kind: 'key', unpaid: key.unpaid });
  const blocked = key.blocked ? key : scopes.find((scope) => scope.blocked);
  if (blocked !== undefined) return err({ code: 'key_blocked', kind: blocked.kind });
  return ok(callerOf(record));
}

/** The same for the same record, so that what follows from it is worked out once (terms.ts). */
const callers = new WeakMap<KeyRecord, Caller>();

function callerOf(record: KeyRecord): Caller {
  const known = callers.get(record);
  if (known !== undefined) return known;
  const caller: Caller = { ...record, [made]: true };
  callers.set(record, caller);
  return caller;
}
