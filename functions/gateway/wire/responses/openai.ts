// Responses for OpenAI's dialect: bytes pass through. The model is set, and a limit may be lowered.

import { ok } from '#core/failure/result.ts';
import { toUtf8 } from '#core/json/bytes.ts';
import { member } from '#core/json/json.ts';
import { type Codec, type Recipient, type Reply, type ReplyOptions, toCall } from '../codec.ts';
import { readError, readJson, routeToOpenai } from '../dialects/openai-dialect.ts';
import { type NewValue, spliceBytes } from '../json/json-splice.ts';
import { withoutSecretsIn } from '../json/secrets.ts';
import { lookalikesOf, type ModelRequest } from '../request.ts';
import { toNamedEvent } from '../streams/sse.ts';
import { mark } from './marks.ts';
import { createReader } from './stream.ts';
import { createEndWriter } from './stream-end.ts';
import { DECIDING_MEMBERS } from './unmetered.ts';
import { sizeOf, toUsage } from './usage.ts';

export const openai: Codec = {
  isTranslated: false,
  showsSearches: true,
  routeTo: (address) => routeToOpenai(address, '/responses'),
  toCall: (request, recipient) => ok(toCall(request, recipient, toBody(request, recipient))),
  readReply,
  readError,
  countsTokens: true,
  // Codex gives up after five minutes without an event; a comment does not count.
  streams: { createReader, createEndWriter, keepAlive: toNamedEvent('keepalive', {}) },
};

/**
 * Members that the gateway reads or sets. If one is repeated, the last one counts, and the others do not reach the
 * provider.
 */
export const OWN_MEMBERS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'stream',
  'max_output_tokens',
  ...DECIDING_MEMBERS,
]);
const lookalikesIn = lookalikesOf(OWN_MEMBERS);

function toBody(
  request: ModelRequest,
  { endpoint, limit: { sentLimit } }: Recipient,
): ReadonlyArray<Uint8Array | string> {
  const set: NewValue[] = [['model', JSON.stringify(endpoint.entry.model)]];
  if (sentLimit !== undefined && sentLimit < (request.limit ?? Number.POSITIVE_INFINITY))
    set.push(['max_output_tokens', `${sentLimit}`]);
  if (request.store === false) set.push(['store', 'false']);
  const { body } = request;
  return spliceBytes(body, body.object, { set, drop: lookalikesIn(body.object), once: OWN_MEMBERS });
}

function readReply(received: Uint8Array, options: ReplyOptions): Reply | undefined {
  const { body: whole, reply } = readJson(received);
  const shown = withoutSecretsIn(reply, options.redact);
  const bytes = shown === reply ? received : toUtf8(JSON.stringify(shown));
  const sent = bytes === received ? whole : bytes;
  const output = member(reply, 'output');
  if (!Array.isArray(output)) return undefined;
  const marked = mark(bytes, { response: reply }, options);
  const body = marked === bytes ? sent : marked;
  const size = () => ({ outputBytes: output.reduce<number>((sum, item) => sum + sizeOf(item), 0), media: 0 });
  return { body, usage: toUsage(reply), size };
}
