// Translations of requests into another dialect. A part without a counterpart there is refused, so that nothing is lost
// silently.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { toUtf8 } from '#core/json/bytes.ts';
import { LONG_TEXT } from '#core/json/json-limits.ts';
import { type Call, type Recipient, toCall } from '../codec.ts';
import type { ModelRequest } from '../request.ts';

/** Refuses a part of the request without a counterpart. The client gets the first refusal. */
export type Refuse = (param: string, message: string) => void;

// The refusal of a body that JSON.parse can read, but that is too deep for recursion and JSON.stringify.
const TOO_DEEP: Failure = {
  code: 'invalid_request',
  message: 'The request body is nested too deeply for this model. Send fewer levels.',
};

/** Translates a body. Returns the first refusal, if there is one. */
export function translate(write: (refuse: Refuse) => object): Result<object, Failure> {
  let problem: Failure | undefined;
  try {
    const body = write((param, message) => {
      problem ??= { code: 'invalid_request', param, message: `"${param}" ${message}` };
    });
    return problem === undefined ? ok(body) : err(problem);
  } catch (error) {
    // The stack is full.
    if (error instanceof RangeError) return err(TOO_DEEP);
    throw error;
  }
}

/** The call with this body. The query and headers of the client are for its own dialect, and are left out. */
export function toTranslatedCall(
  request: ModelRequest,
  recipient: Recipient,
  body: Result<object, Failure>,
): Result<Call, Failure> {
  if (!body.ok) return body;
  const { forwardedHead: _, ...own } = request;
  try {
    const text = JSON.stringify(body.value);
    // A long text would take the engine's own memory while the provider receives it.
    return ok(toCall(own, recipient, [text.length > LONG_TEXT ? toUtf8(text) : text]));
  } catch {
    return err(TOO_DEEP);
  }
}

/** The list; undefined if it is empty, so that its member is not written. */
export function nonEmpty<T>(list: ReadonlyArray<T>): ReadonlyArray<T> | undefined {
  return list.length === 0 ? undefined : list;
}

/**
 * Adds elements to the end of a list, one by one: a client's list may have more elements than one call can have
 * arguments.
 */
export function append<T>(list: T[], more: ReadonlyArray<T>): void {
  for (const one of more) list.push(one);
}
