// Callers: clients whose VirtualKey works. It is not expired, and neither the key nor its user or teams are blocked.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { isKeyValue } from '#core/keys/key-value.ts';
import { toScopeName } from '#core/keys/scope-name.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import { chargedScopesOf, type RequestFailure } from './remaining-limits.ts';

const ticket: unique symbol = Symbol('Caller');

/** A client whose key works. Only `authenticate` makes one. */
export interface Caller extends KeyRecord {
  readonly [ticket]: true;
  /** The key's policy is trusted until this time. After it, the client must be authenticated again. */
  readonly freshUntil: Millis;
  /** The time that the look-up in the database took. The time in which the client sent its body does not count. */
  readonly databaseTime: Millis;
}

type AuthenticationResult = Result<Caller, RequestFailure>;

export type Authenticate = ReturnType<typeof createAuthenticate>;

interface FoundPolicy {
  readonly record: KeyRecord | undefined;
  readonly freshUntil: Millis;
}

/** Finds the record of a key by its hash. `err`: why there is no fresh record. */
type FindPolicy = (hash: string) => Result<FoundPolicy, string> | Promise<Result<FoundPolicy, string>>;

interface AuthenticateOptions {
  readonly databaseTime?: Millis;
  readonly onRecord?: (record: KeyRecord) => void;
}

const INVALID: RequestFailure = { failure: { code: 'invalid_api_key' } };

export function createAuthenticate(deps: { hash: Hash; clock: Clock }, findPolicy: FindPolicy) {
  /**
   * `onRecord` gets the record of the key, also if the key is refused. `databaseTime`: the time that earlier look-ups
   * of this request took. A key with a fresh record needs no wait.
   */
  return function authenticate(
    client: Pick<HttpExchange, 'header'>,
    options: AuthenticateOptions = {},
  ): AuthenticationResult | Promise<AuthenticationResult> {
    const keyValue = keyIn(client);
    if (keyValue === undefined) return err(INVALID);
    const startedAt = deps.clock.now();
    const found = findPolicy(deps.hash(keyValue));
    return found instanceof Promise
      ? found.then((result) => toCaller(result, startedAt, options))
      : toCaller(found, startedAt, options);
  };

  function toCaller(
    found: Result<FoundPolicy, string>,
    startedAt: Millis,
    { databaseTime = 0, onRecord }: AuthenticateOptions,
  ): AuthenticationResult {
    const now = deps.clock.now();
    if (!found.ok) return err({ failure: { code: 'ledger_unavailable', why: found.failure } });
    const { record, freshUntil } = found.value;
    if (record === undefined) return err(INVALID);
    onRecord?.(record);
    const failure = keyFailureOf(record, now);
    if (failure !== undefined) return err({ failure, chargedScopes: chargedScopesOf(record) });
    const until = Math.min(freshUntil, record.key.expiresAt ?? freshUntil);
    return ok({ ...record, [ticket]: true, freshUntil: until, databaseTime: databaseTime + now - startedAt });
  }
}

/**
 * The key value of the bearer token; without such a token, that of `x-api-key`, which Anthropic's clients send. Some of
 * them send another bearer token beside it. A text without the form of a key value does not count.
 */
function keyIn(client: Pick<HttpExchange, 'header'>): string | undefined {
  // The scheme is not case-sensitive, and blanks around the key value do not belong to it (RFC 9110, 11.1).
  const [, bearer] = /^\s*bearer\s+(\S+)\s*$/i.exec(client.header('authorization') ?? '') ?? [];
  const key = bearer ?? client.header('x-api-key')?.trim();
  return key !== undefined && isKeyValue(key) ? key : undefined;
}

function keyFailureOf({ key, scopes }: KeyRecord, now: Millis): Failure | undefined {
  if (key.expiresAt !== undefined && key.expiresAt <= now) return { code: 'expired_api_key', at: key.expiresAt };
  if (key.blocked && key.missingOwnerReason !== undefined)
    return { code: 'key_blocked', ...toScopeName(key, scopes), missingOwnerReason: key.missingOwnerReason };
  const blocked = key.blocked ? key : scopes.find((scope) => scope.blocked);
  return blocked === undefined ? undefined : { code: 'key_blocked', ...toScopeName(blocked, scopes) };
}
