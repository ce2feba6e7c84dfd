// Names of a request, and the format of its errors.

import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Ids } from '#core/ports/ids.ts';
import { type ErrorFormat, openaiErrors } from '../wire/dialects/error-format.ts';

/** The names of a request in its replies: our id, and the client's own name, which is only echoed and logged. */
export interface RequestContext {
  readonly requestId: string;
  readonly clientRequestId: string | undefined;
  /** `spec.blockedMessage` of the instance. */
  readonly blockedMessage: string | undefined;
  readonly errors: ErrorFormat;
}

/** `errors`: absent for a path outside of every API. */
interface ContextOptions {
  readonly blockedMessage?: string | undefined;
  readonly errors?: ErrorFormat | undefined;
}

/** The form of a client's name for its request: printable, and short enough for a header. */
const CLIENT_NAME = /^[\x21-\x7e]{1,128}$/;

export function toRequestContext(
  client: HttpExchange,
  ids: Ids,
  { blockedMessage, errors = openaiErrors }: ContextOptions = {},
): RequestContext {
  const name = client.header('x-client-request-id') ?? client.header('x-request-id');
  return {
    requestId: ids.next(),
    clientRequestId: name !== undefined && CLIENT_NAME.test(name) ? name : undefined,
    blockedMessage,
    errors,
  };
}
