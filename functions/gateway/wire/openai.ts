// OpenAI's chat completions API: bytes pass through; a few members are changed on the way in and read on the way out.
import type { Failure } from '#core/failure.ts';
import { member, parseJson } from '#core/json.ts';
import { ok, type Result } from '#core/result.ts';
import { toUsage } from '#core/usage.ts';
import { type Chat, LIMIT_NAMES, type LimitName, lookalikesIn, OWN_MEMBERS } from './chat.ts';
import { type Dialect, headersFor, type Recipient, type Reply, type WireRequest } from './dialect.ts';
import { membersOf, type NewValue, splice } from './json-splice.ts';
import { createReader, openaiError } from './openai-stream.ts';
import { sizeOf } from './output-size.ts';

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export const openai: Dialect = {
  toRequest,
  readReply,
  readError: (bytes) => openaiError(parseJson(decoder.decode(bytes))),
  createReader,
};

function toRequest(chat: Chat, to: Recipient): Result<WireRequest, Failure> {
  const version = to.credentials.apiVersion;
  const query = version === undefined ? '' : `?api-version=${encodeURIComponent(version)}`;
  const set: NewValue[] = [['model', JSON.stringify(to.entry.model)]];
  const { streamOptions: knowsOptions } = to.provider;
  if (chat.stream && knowsOptions) set.push(['stream_options', streamOptions(chat)]);
  const names = addLimits(set, chat, to);
  const unknown = knowsOptions ? names : ['stream_options', ...names];
  const drop = unknown.length === 0 ? chat.lookalikes : new Set([...chat.lookalikes, ...unknown]);
  return ok({
    url: `${to.base}/chat/completions${query}`,
    headers: headersOf(to, chat.stream),
    body: encoder.encode(splice(chat.text, chat.object, { set, drop, once: OWN_MEMBERS })),
  });
}

function headersOf({ provider, credentials }: Recipient, stream: boolean): Readonly<Record<string, string>> {
  const { apiKey, organization } = credentials;
  const headers = headersFor(stream);
  if (apiKey !== undefined) headers[provider.auth] = provider.auth === 'authorization' ? `Bearer ${apiKey}` : apiKey;
  if (organization !== undefined) headers['openai-organization'] = organization;
  return headers;
}

const FORCED: ReadonlySet<string> = new Set(['include_usage']);

/** The client's `stream_options` with usage switched on; its other options stay. */
function streamOptions(chat: Chat): string {
  const sent = chat.streamOptions;
  if (sent === undefined) return '{"include_usage":true}';
  const options = chat.text.slice(sent.valueStart, sent.end);
  const object = membersOf(options);
  return splice(options, object, { set: [['include_usage', 'true']], drop: lookalikesIn(object, FORCED) });
}

const NO_NAMES: ReadonlyArray<LimitName> = [];
const NEWER_NAME: ReadonlyArray<LimitName> = ['max_completion_tokens'];

/**
 * A limit of ours lowers the fields that the client used, else sets the one that the provider knows. Providers that know only the
 * older name get that one, or they would apply no limit. Returns the name that they must not get.
 */
function addLimits(set: NewValue[], { limits }: Chat, { limit, provider }: Recipient): ReadonlyArray<LimitName> {
  const { send } = limit;
  const { max_completion_tokens: newer, max_tokens: older = 0 } = limits;
  if (newer !== undefined && provider.outputLimit === 'max_tokens') {
    set.push(['max_tokens', `${Math.min(Math.max(newer, older), send ?? Number.MAX_SAFE_INTEGER)}`]);
    return NEWER_NAME;
  }
  if (send === undefined) return NO_NAMES;
  let isNamed = false;
  for (const name of LIMIT_NAMES) {
    const value = limits[name];
    isNamed ||= value !== undefined;
    if (value !== undefined && value > send) set.push([name, `${send}`]);
  }
  if (!isNamed) set.push([provider.outputLimit, `${send}`]);
  return NO_NAMES;
}

function readReply(bytes: Uint8Array): Reply | undefined {
  const text = decoder.decode(bytes);
  const reply = parseJson(text);
  const choices = member(reply, 'choices');
  if (!Array.isArray(choices)) return undefined;
  return {
    body: isSame(text, bytes) ? text : bytes,
    usage: toUsage(member(reply, 'usage')),
    size: () => sizeOf(choices, 'message'),
  };
}

/** Bytes that are no UTF-8 were read as U+FFFD, and a byte order mark as nothing. */
function isSame(text: string, bytes: Uint8Array): boolean {
  return bytes[0] !== 0xef && !text.includes('\ufffd');
}
