// Callers: bearers of live keys, neither expired nor blocked, nor their user or teams.
import type { Failure } from '#core/failure.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import { err, ok, type Result } from '#core/result.ts';

const made: unique symbol = Symbol('Caller');

/** A bearer whose key works. Only `authenticate` makes one. */
export interface Caller extends KeyRecord {
  readonly [made]: true;
  /** The time that the database took. The time that the client takes for its body does not count. */
  readonly waited: Millis;
}

export type Authenticate = ReturnType<typeof createAuthenticate>;

/** The record of a key by its hash; `err`: no fresh answer can be had, and why. */
type FindPolicy = (hash: string) => Promise<Result<KeyRecord | undefined, string>>;

/** More than any key has: a longer text is refused without a hash. */
const MAX_KEY = 1024;

export function createAuthenticate(deps: { hash: Hash; clock: Clock }, findPolicy: FindPolicy) {
  /** `before`: the time that the database has taken already. */
  return async function authenticate(
    client: Pick<HttpExchange, 'header'>,
    before: Millis = 0,
  ): Promise<Result<Caller, Failure>> {
    const key = bearerOf(client.header('authorization'));
    if (key === undefined) return err({ code: 'invalid_api_key' });
    const asked = deps.clock.now();
    const found = await findPolicy(deps.hash(key));
    const now = deps.clock.now();
    if (!found.ok) return err({ code: 'ledger_unavailable', why: found.failure });
    if (found.value === undefined) return err({ code: 'invalid_api_key' });
    return toCaller(found.value, now, before + now - asked);
  };
}

/** The scheme has no case, and blanks around the key are not part of it (RFC 9110, 11.1). */
function bearerOf(header: string | undefined): string | undefined {
  const [, key] = /^\s*bearer\s+(\S+)\s*$/i.exec(header ?? '') ?? [];
  return key === undefined || key.length > MAX_KEY ? undefined : key;
}

function toCaller({ key, scopes }: KeyRecord, now: Millis, waited: Millis): Result<Caller, Failure> {
  if (key.expiresAt !== undefined && key.expiresAt <= now) return err({ code: 'expired_api_key', at: key.expiresAt });
  if (key.blocked && key.unpaid !== undefined) return err({ code: 'key_blocked', kind: 'key', unpaid: key.unpaid });
  const blocked = key.blocked ? key : scopes.find((scope) => scope.blocked);
  if (blocked !== undefined) return err({ code: 'key_blocked', kind: blocked.kind });
  return ok({ [made]: true, key, scopes, waited });
}
