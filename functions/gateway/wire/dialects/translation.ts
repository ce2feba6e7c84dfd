// Translations of requests into another dialect: what has no counterpart there is refused, so that nothing is lost
// silently.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { toUtf8 } from '#core/json/bytes.ts';
import { LONG_TEXT } from '#core/json/json-limits.ts';
import { type Call, type Recipient, toCall } from '../codec.ts';
import type { ModelRequest } from '../request.ts';

/** Refuses a part of the request that has no counterpart there. The client gets the first refusal. */
export type Refuse = (param: string, message: string) => void;

// JSON.parse reads deeper nesting than recursion and JSON.stringify can follow.
const TOO_DEEP: Failure = { code: 'invalid_request', message: 'The request body is nested too deeply.' };

/** The body that is written, or the first refusal. */
export function translate(write: (refuse: Refuse) => object): Result<object, Failure> {
  let problem: Failure | undefined;
  try {
    const body = write((param, message) => {
      problem ??= { code: 'invalid_request', param, message: `"${param}" ${message}` };
    });
    return problem === undefined ? ok(body) : err(problem);
  } catch (error) {
    // The stack is used up.
    if (error instanceof RangeError) return err(TOO_DEEP);
    throw error;
  }
}

/**
 * The call with this body. The query and the headers that the client chose are for its own dialect, and stay behind.
 */
export function toTranslatedCall(
  request: ModelRequest,
  to: Recipient,
  body: Result<object, Failure>,
): Result<Call, Failure> {
  if (!body.ok) return body;
  const { forwardedHead: _, ...own } = request;
  try {
    const text = JSON.stringify(body.value);
    // A long text would fill the engine's own memory for as long as the provider takes it.
    return ok(toCall(own, to, [text.length > LONG_TEXT ? toUtf8(text) : text]));
  } catch {
    return err(TOO_DEEP);
  }
}

/** A list that is not empty. A member that is undefined is not written. */
export function some<T>(list: ReadonlyArray<T>): ReadonlyArray<T> | undefined {
  return list.length === 0 ? undefined : list;
}

/** Adds to the end of a list, one by one: as arguments of one call, a client's list may be longer than the stack. */
export function append<T>(list: T[], more: ReadonlyArray<T>): void {
  for (const one of more) list.push(one);
}
