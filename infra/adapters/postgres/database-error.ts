// Errors of the database: it is unreachable (503, with advice for a person), or the error is our own.
import pg from 'pg';
import { reasonOf } from '#core/failure/error-text.ts';
import { cutText } from '#core/json/text.ts';
import { type DatabaseConnection, DatabaseUnreachable, SchemaMissing } from '#core/ports/backends.ts';
import { AnswerRefused } from '../backends/reply-memory.ts';
import { MAX_ROUNDS } from './authentication.ts';

/** The address of a database for messages, without the password. */
type DatabaseAddress = Omit<DatabaseConnection, 'password'>;

const at = (address: DatabaseAddress) => `PostgreSQL at ${address.host}:${address.port}`;

/** SQLSTATE (or its class) → what a person should check. Source: PostgreSQL, Appendix A. */
const ADVICE: Readonly<Record<string, (address: DatabaseAddress) => string>> = {
  '28': ({ username, dbname }) =>
    `refused the user "${username}" for database "${dbname}": check username and password`,
  '3D000': ({ dbname }) => `has no database "${dbname}": create it, or correct the name`,
  '42501': ({ username, dbname }) =>
    `does not let "${username}" do what is needed: grant create on database "${dbname}", or own the schema gateway_operator`,
  '25P03': () => 'ended the transaction of a process that was silent for too long',
  '25006': () => 'is read-only: point the instance to the primary',
  '40': () => 'rolled the transaction back because of a concurrent transaction',
  '53': () => 'is out of resources (connections, memory or disk): look at its log, and raise the limit',
  '55P03': () => 'did not grant a lock in time',
  '57': () => 'is starting, stopping, or gave up on a statement',
  '58': () => 'reports a system error: look at its log',
  '08': () => 'broke the connection',
  XX: () => 'reports an internal error: look at its log',
};

/** The SQLSTATEs of an undefined table and of an undefined schema. */
const NO_SCHEMA: ReadonlySet<string> = new Set(['42P01', '3F000']);

/**
 * The connection could not be made, or ended during a statement: every error that is not an error reply of the server.
 */
export class ConnectionBroke extends Error {
  override readonly name = 'ConnectionBroke';
}

/** Wraps a call to the server: every error other than an error reply of the server becomes `ConnectionBroke`. */
export async function asConnectionError<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    // The message may have megabytes, and would get into conditions and logs.
    if (error instanceof Error) error.message = cutText(error.message);
    // An error without a SQLSTATE is of the client library, which could not read the reply: the server is no
    // PostgreSQL.
    if (error instanceof pg.DatabaseError && error.code !== undefined) throw error;
    throw new ConnectionBroke(reasonOf(error), { cause: error });
  }
}

/**
 * The error for the caller in place of `error`: DatabaseUnreachable for a database that is away or has no schema, else
 * the error itself.
 */
export function toCallerError(error: unknown, address: DatabaseAddress): unknown {
  if (error instanceof ConnectionBroke) return unreachable(address, whyBroken(error), error.cause);
  if (error instanceof AnswerRefused) return unreachable(address, error.message, error);
  if (!(error instanceof pg.DatabaseError)) return error;
  if (NO_SCHEMA.has(error.code ?? '')) {
    const what = 'has no schema of the operator yet: the reconciler creates it when it reaches the instance';
    return new SchemaMissing(`${at(address)} ${what}`, { cause: error });
  }
  const advice = ADVICE[error.code ?? ''] ?? ADVICE[(error.code ?? '').slice(0, 2)];
  return advice === undefined
    ? error
    : unreachable(address, `${advice(address)} (${error.code}: ${error.message})`, error);
}

/** The client library's message if the server refuses TLS. */
export const NO_TLS = 'The server does not support SSL connections';

/** Part of the client library's message if the server asks for more rounds than MAX_ROUNDS. */
const TOO_MANY_ROUNDS = 'exceeds scramMaxIterations';

/**
 * Error codes of OpenSSL for a client certificate, key or authority that cannot be read, or that do not belong
 * together.
 */
const UNREADABLE = /^ERR_OSSL_/;
/** Error codes of Node and OpenSSL for a certificate that does not verify. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/;

function whyBroken({ message, cause }: ConnectionBroke): string {
  if (cause instanceof AnswerRefused) return message;
  if (message === NO_TLS)
    return 'does not offer TLS, which sslmode requires: enable TLS there, or set a weaker sslmode';
  if (message.includes(TOO_MANY_ROUNDS))
    return `asks for more than ${MAX_ROUNDS} rounds of hashing (${message}): set a smaller scram_iterations there, then set the user's password again`;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (UNREADABLE.test(code))
    return `is not called, because a certificate or key cannot be used (${message}): check the values of sslrootcert, sslcert and sslkey`;
  if (CERTIFICATE.test(code))
    return `has a certificate that does not verify (${message}): check sslrootcert and the host's name`;
  return `cannot be reached (${message}): check host and port`;
}

/**
 * Whether the connection broke, or its server became a read-only standby by a failover (25006), so that another
 * connection may succeed.
 */
export function isBroken(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08|25006|57P0[123])/.test(error.code ?? '');
  return error instanceof ConnectionBroke && !(error.cause instanceof AnswerRefused);
}

/** Whether the server cancelled a statement that took too long: other statements may succeed. */
export const isStatementTimeout = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '57014';

/** The error if the database does not reply within `millis`. */
export function toTimeout(address: DatabaseAddress, millis: number): DatabaseUnreachable {
  return new DatabaseUnreachable(`${at(address)} did not answer within ${millis} ms: check host, port and the network`);
}

/** The error if the work that uses the database has ended or was aborted. */
export const toWorkEndedError = (address: DatabaseAddress, reason: Error): DatabaseUnreachable =>
  unreachable(address, reason.message, reason);

function unreachable(address: DatabaseAddress, what: string, cause: unknown): DatabaseUnreachable {
  return new DatabaseUnreachable(`${at(address)} ${what}`, { cause });
}
