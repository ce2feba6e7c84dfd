// Messages for Anthropic's dialect: bytes pass through. The model is set, and a limit may be lowered.

import { ok } from '#core/failure/result.ts';
import { fromUtf8 } from '#core/json/bytes.ts';
import { member, parseJson, textOf } from '#core/json/json.ts';
import { bytesOfJson } from '../chat/output-size.ts';
import type { Codec, Recipient, Reply } from '../codec.ts';
import { membersFor, toAnthropicCall } from '../dialects/anthropic-clouds.ts';
import { addUsage, anthropicError, routeToAnthropic, toUsage } from '../dialects/anthropic-dialect.ts';
import { readJson } from '../dialects/openai-dialect.ts';
import { type NewValue, spliceBytes } from '../json/json-splice.ts';
import { bytesIn } from '../prompt/prompt.ts';
import { lookalikesOf, type ModelRequest } from '../request.ts';
import { toNamedEvent } from '../streams/sse.ts';
import { createReader } from './stream.ts';
import { createEndWriter } from './stream-end.ts';
import { DECIDING_MEMBERS } from './unmetered.ts';

/** The event that clients ignore. */
export const PING = toNamedEvent('ping', {});

export const anthropic: Codec = {
  isTranslated: false,
  showsSearches: true,
  routeTo: routeToAnthropic,
  toCall: (request, recipient) => ok(toAnthropicCall(request, recipient, toBody(request, recipient))),
  readReply,
  readError,
  countsTokens: true,
  streams: { createReader, createEndWriter, keepAlive: PING },
};

/**
 * Members that the gateway reads or sets. If one is repeated, the last one counts, and the others do not reach the
 * provider.
 */
export const OWN_MEMBERS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'max_tokens',
  ...DECIDING_MEMBERS,
]);
const lookalikesIn = lookalikesOf(OWN_MEMBERS);

function toBody(request: ModelRequest, recipient: Recipient): ReadonlyArray<Uint8Array | string> {
  const { endpoint, limit } = recipient;
  const cloud = membersFor(recipient, request);
  const own = Object.entries(cloud?.set ?? { model: endpoint.entry.model });
  const set = own.map(([name, value]): NewValue => [name, JSON.stringify(value)]);
  const { sentLimit } = limit;
  if (sentLimit !== undefined && sentLimit < (request.limit ?? Number.POSITIVE_INFINITY))
    set.push(['max_tokens', `${sentLimit}`]);
  const { body } = request;
  const lookalikes = lookalikesIn(body.object);
  const drop = cloud === undefined ? lookalikes : lookalikes.union(cloud.drop);
  return spliceBytes(body, body.object, { set, drop, once: OWN_MEMBERS });
}

function readReply(bytes: Uint8Array): Reply | undefined {
  const { body, reply } = readJson(bytes);
  const content = member(reply, 'content');
  if (!Array.isArray(content)) return undefined;
  const size = () => ({ outputBytes: content.reduce<number>((sum, block) => sum + sizeOf(block), 0), media: 0 });
  return { body, usage: toUsage(addUsage({}, member(reply, 'usage'))), size };
}

/** Bytes of a block that the model wrote. Results of searches do not count. */
function sizeOf(block: unknown): number {
  const texts = [member(block, 'text'), member(block, 'thinking'), member(block, 'name')].map(
    (text) => textOf(text) ?? '',
  );
  const input = member(block, 'input');
  return bytesIn(texts.join('')) + (input === undefined ? 0 : bytesOfJson(input));
}

/**
 * The error of a body. Clients decide by the provider's message whether they repeat the request: the whole body is
 * kept.
 */
function readError(bytes: Uint8Array): ReturnType<Codec['readError']> {
  const text = fromUtf8(bytes);
  const body = parseJson(text);
  const isWhole = member(body, 'type') === 'error';
  return { ...anthropicError(body), ...(isWhole ? { body: text } : {}) };
}
