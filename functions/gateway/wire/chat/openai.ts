// Chat completions for OpenAI's dialect: bytes pass through. A few members of the request are changed, and a few of the
// reply are read.

import { ok } from '#core/failure/result.ts';
import { member } from '#core/json/json.ts';
import { toUsage } from '#core/money/usage.ts';
import { type Codec, type Recipient, type Reply, toCall } from '../codec.ts';
import { readError, readJson, routeToOpenai } from '../dialects/openai-dialect.ts';
import { membersOf, type NewValue, splice, spliceBytes } from '../json/json-splice.ts';
import { DECIDING_MEMBERS } from '../prompt/unmetered-features.ts';
import { lookalikesOf, type ModelRequest } from '../request.ts';
import { createReader } from './openai-stream.ts';
import { sizeOf } from './output-size.ts';
import { createEndWriter } from './stream-end.ts';

export const openai: Codec = {
  isTranslated: false,
  routeTo: (address) => routeToOpenai(address, '/chat/completions'),
  toCall: (chat, recipient) => ok(toCall(chat, recipient, toBody(chat, recipient))),
  readReply,
  readError,
  streams: { createReader, createEndWriter },
};

type LimitName = 'max_completion_tokens' | 'max_tokens';
export const LIMIT_NAMES: ReadonlyArray<LimitName> = ['max_completion_tokens', 'max_tokens'];

const READ = ['model', 'messages', 'stream', 'stream_options', 'n', 'store'];
/**
 * Members that the gateway reads or sets. If one is repeated, the last one counts (as in JSON.parse), and the others do
 * not reach the provider.
 */
export const OWN_MEMBERS: ReadonlySet<string> = new Set([...READ, ...DECIDING_MEMBERS, ...LIMIT_NAMES]);
const lookalikesIn = lookalikesOf(OWN_MEMBERS);

function toBody(chat: ModelRequest, recipient: Recipient): ReadonlyArray<Uint8Array | string> {
  const { entry, provider } = recipient.endpoint;
  const set: NewValue[] = [['model', JSON.stringify(entry.model)]];
  const { streamOptions: knowsOptions } = provider;
  if (chat.stream && knowsOptions) set.push(['stream_options', streamOptionsOf(chat)]);
  if (chat.store === false && (recipient.endpoint.provider.storesChats === true || isWritten(chat, 'store')))
    set.push(['store', 'false']);
  const names = addLimits(set, chat, recipient);
  const unknown = knowsOptions ? names : ['stream_options', ...names];
  const { body } = chat;
  const lookalikes = lookalikesIn(body.object);
  const drop = unknown.length === 0 ? lookalikes : new Set([...lookalikes, ...unknown]);
  return spliceBytes(body, body.object, { set, drop, once: OWN_MEMBERS });
}

function isWritten({ body }: ModelRequest, wanted: string): boolean {
  return body.object.members.some(({ name }) => name === wanted);
}

const forcedLookalikesIn = lookalikesOf(new Set(['include_usage']));

/** The client's `stream_options` with `include_usage`; the other options stay. */
function streamOptionsOf(chat: ModelRequest): string {
  const sent = chat.streamOptions;
  if (sent === undefined) return '{"include_usage":true}';
  const options = chat.body.text.slice(sent.valueStart, sent.end);
  const object = membersOf(options);
  return splice(options, object, { set: [['include_usage', 'true']], drop: forcedLookalikesIn(object) });
}

const NO_NAMES: ReadonlyArray<LimitName> = [];
const NEWER_NAME: ReadonlyArray<LimitName> = ['max_completion_tokens'];

/**
 * Adds the limit: it lowers the members that the client used, else sets the member that the provider has. Providers
 * that have only the older name get only that, or they would apply no limit. Returns the names that the provider must
 * not get.
 */
function addLimits(
  set: NewValue[],
  { limits }: ModelRequest,
  { limit, endpoint }: Recipient,
): ReadonlyArray<LimitName> {
  const { outputLimit } = endpoint.provider;
  const { sentLimit } = limit;
  const { max_completion_tokens: newer, max_tokens: older = 0 } = limits;
  if (newer !== undefined && outputLimit === 'max_tokens') {
    set.push(['max_tokens', `${Math.min(Math.max(newer, older), sentLimit ?? Number.MAX_SAFE_INTEGER)}`]);
    return NEWER_NAME;
  }
  if (sentLimit === undefined) return NO_NAMES;
  let isNamed = false;
  for (const name of LIMIT_NAMES) {
    const value = limits[name];
    isNamed ||= value !== undefined;
    if (value !== undefined && value > sentLimit) set.push([name, `${sentLimit}`]);
  }
  if (!isNamed) set.push([outputLimit, `${sentLimit}`]);
  return NO_NAMES;
}

function readReply(bytes: Uint8Array): Reply | undefined {
  const { body, reply } = readJson(bytes);
  const choices = member(reply, 'choices');
  if (!Array.isArray(choices)) return undefined;
  return {
    body,
    usage: toUsage(member(reply, 'usage')),
    size: () => sizeOf(choices, 'message'),
  };
}
