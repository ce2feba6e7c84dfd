// OpenAI's dialect, as all APIs share it: addresses, replies that pass through, and errors.
import { fromUtf8 } from '#core/json/bytes.ts';
import { member, parseJson, textOf, toJson } from '#core/json/json.ts';
import { LONG_TEXT } from '#core/json/json-limits.ts';
import { type Address, authOf, type ProviderRoute, type Reply, toRoute, type WireError } from '../codec.ts';

/** `path`: the path of the API after the provider's address. */
export function routeToOpenai(address: Address, path: string): ProviderRoute {
  const { apiVersion, organization } = address.credentials;
  const query = apiVersion === undefined ? '' : `?api-version=${encodeURIComponent(apiVersion)}`;
  const ofOrganization = organization === undefined ? {} : { 'openai-organization': organization };
  return toRoute(`${address.base}${path}${query}`, { ...authOf(address), ...ofOrganization });
}

/** The parsed reply, and its body as it passes through: a text, if the text is equal. */
export function readJson(bytes: Uint8Array): { readonly body: Reply['body']; readonly reply: unknown } {
  const text = fromUtf8(bytes);
  // A long text would take the engine's own memory until the client has taken the reply.
  const isText = bytes.length <= LONG_TEXT && isSame(text, bytes);
  return { body: isText ? text : bytes, reply: parseJson(text) };
}

/**
 * Whether the text is equal to the bytes. Bytes that are no UTF-8 are read as U+FFFD, and a byte order mark is dropped.
 */
function isSame(text: string, bytes: Uint8Array): boolean {
  return bytes[0] !== 0xef && !text.includes('\ufffd');
}

export function readError(bytes: Uint8Array): WireError {
  return readOpenaiError(parseJson(fromUtf8(bytes)));
}

/** The error of OpenAI's format, or of the flat formats of others (`{"message"}`, `{"detail"}`). */
export function readOpenaiError(body: unknown): WireError {
  const error = member(body, 'error') ?? body;
  const message = typeof error === 'string' ? error : (member(error, 'message') ?? member(error, 'detail'));
  const code = member(error, 'code') ?? member(error, 'type');
  const status = Number(member(error, 'status') ?? member(error, 'code'));
  return {
    message: typeof message === 'string' ? message : toJson(message),
    param: textOf(member(error, 'param')),
    type: textOf(member(error, 'type')),
    code: typeof code === 'number' ? String(code) : textOf(code),
    status: Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined,
  };
}
