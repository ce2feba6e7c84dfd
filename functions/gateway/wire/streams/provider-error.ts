// Errors with which a provider ends a stream: clients see their type and code, not their message.
import type { ShownError, WireError } from '../codec.ts';

/** The form of names of errors and members; other texts may contain anything. */
const NAME = /^[\w.[\]-]{1,64}$/;
/** Errors between the gateway and its provider. A client would take them for errors of its key or quota. */
const GATEWAY_ERROR = /^(insufficient_quota|usage_limit|billing|authentication|invalid_api_key|permission)/;
/** Errors of the provider's servers: other requests will fail too. */
const SERVER_ERROR = /overloaded|rate_limit|server|internal|unavailable|timeout|api_error|quota|billing|authentication/;

export function toShownError({ type, code, param }: WireError): ShownError {
  const [shownType, shownCode] = [toName(type), toName(code)];
  const name = shownCode ?? shownType;
  const isOurs = GATEWAY_ERROR.test(shownType ?? '') || GATEWAY_ERROR.test(shownCode ?? '');
  const message = 'The provider ended the stream with an error';
  if (isOurs || name === undefined) return { ...NO_NAMES, message: `${message}.` };
  return { message: `${message} (${name}).`, type: shownType, code: shownCode, param: toName(param) };
}

const NO_NAMES = { type: undefined, code: undefined, param: undefined };

function toName(text: string | undefined): string | undefined {
  return text !== undefined && NAME.test(text) ? text : undefined;
}

/** Whether the request caused the error, so that the model entry may serve others. */
export function isRequestError({ status, type, code }: WireError): boolean {
  if (status !== undefined) return status < 500 && status !== 429;
  const name = code ?? type;
  return name !== undefined && !SERVER_ERROR.test(name);
}
