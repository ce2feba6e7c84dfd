// Upstash over HTTPS: one request per call, no open connection between calls (upstash.com/docs/redis/features/restapi).
import { fromUtf8, readBytes } from '#core/json/bytes.ts';
import { isObject, member, parseJson } from '#core/json/json.ts';
import { cutText } from '#core/json/text.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import { AnswerRefused, jsonBytes, MAX_OWN_REPLY, MAX_REPLY } from '../backends/reply-memory.ts';
import { createEvaluate } from './counter-store.ts';
import type { RedisConnection, StoreDependencies } from './tcp.ts';

/** The maximum memory of a parsed reply in addition to its text: a reply is one text or one error. */
const MAX_VALUES = 4096;
/** The timeout of a request. Clients wait less (core/ledger/timeout.ts), and a later answer still counts. */
const ANSWER_TIMEOUT = 1700;
/** The status of a call with a token that the server does not know: the command did not run. */
const UNAUTHORIZED = 401;

type UpstashAddress = Extract<StoreConnection, { type: 'upstash' }>;

interface UpstashDependencies extends Pick<StoreDependencies, 'readLogin' | 'workMemory'> {
  /** Default: the platform's own, without a proxy. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** The maximum bytes of a reply. Default: MAX_REPLY for work with its own memory, else MAX_OWN_REPLY. */
  readonly maxReply?: number;
}

/**
 * Sends each call once: the caller repeats it (ports/counter-store.ts). Only a call that the server refuses for its
 * token is sent again, with the token that is mounted now if that is another one.
 */
export function openUpstash(
  { url, token }: UpstashAddress,
  {
    readLogin,
    workMemory,
    fetch = globalThis.fetch,
    maxReply = workMemory === undefined ? MAX_OWN_REPLY : MAX_REPLY,
  }: UpstashDependencies = {},
): RedisConnection {
  /** The token that the server accepted last. */
  let accepted = token;
  const send = (body: string, asToken: string, signal: AbortSignal): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      // Amounts in replies stay strings, because nobody asks for other encodings.
      headers: { authorization: `Bearer ${asToken}`, 'content-type': 'application/json' },
      body,
      // Another address would get the token. Workers do not support 'error'.
      redirect: 'manual',
      signal,
    });
  const post = async (command: ReadonlyArray<string>): Promise<unknown> => {
    const timeout = AbortSignal.timeout(ANSWER_TIMEOUT);
    const signal = workMemory === undefined ? timeout : AbortSignal.any([timeout, workMemory.signal]);
    const body = JSON.stringify(command);
    let response = await send(body, accepted, signal);
    const next = response.status === UNAUTHORIZED ? readTokenNow(readLogin, url) : undefined;
    if (next !== undefined && next !== accepted) {
      await response.body?.cancel();
      response = await send(body, next, signal);
      if (response.ok) accepted = next;
    }
    return resultOf(response.status, await readText(response, maxReply));
  };
  return {
    evaluate: createEvaluate((command, script, key, args) => post([command, script, '1', key, ...args])),
    reconnect: () => undefined,
    close: async () => undefined,
  };
}

/** The token that can be read now. Undefined: none can, or it is for another address, which must not get this one's. */
function readTokenNow(read: UpstashDependencies['readLogin'], url: string): string | undefined {
  try {
    const found = read?.();
    return found?.type === 'upstash' && found.url === url ? found.token : undefined;
  } catch {
    // The kubelet is writing the files, or the Secret lacks a key.
    return undefined;
  }
}

/** Returns the body as text. Throws if it is longer than `maxBytes`, before the rest is received. */
async function readText({ body }: Response, maxBytes: number): Promise<string> {
  const bytes = await readBytes(body, maxBytes);
  if (bytes !== undefined) return fromUtf8(bytes);
  throw new AnswerRefused(
    `answers with more than ${maxBytes / 1024} KiB: check that the Secret names the right server`,
  );
}

/** Returns the member `result`. Throws an error with the server's message if there is none. */
function resultOf(status: number, text: string): unknown {
  if (jsonBytes(text) > MAX_VALUES)
    throw new AnswerRefused(
      'answers with data that is no reply of Upstash: check that the Secret names the right server',
    );
  const body = parseJson(text);
  const error = member(body, 'error');
  if (error !== undefined) throw new Error(cutText(String(error)));
  if (status !== 200 || !isObject(body)) throw new Error(`unexpected answer with status ${status}`);
  return body.result;
}
