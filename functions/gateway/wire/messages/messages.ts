// Anthropic's Messages API: the members that the gateway reads, and the codecs of providers that serve it.
import type { Failure } from '#core/failure/failure.ts';
import { ok, type Result } from '#core/failure/result.ts';
import { listOf, textOf } from '#core/json/json.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Api } from '../api.ts';
import { anthropicErrors } from '../dialects/error-format.ts';
import { readLimited } from '../prompt/limited-request.ts';
import { NOTHING_STORED } from '../prompt/stored-state.ts';
import { type Members, webSearchesIn } from '../prompt/unmetered-features.ts';
import {
  type ForwardedHead,
  invalid,
  isAbsent,
  type ModelRequest,
  minOutputOf,
  notObjectsIn,
  readBody,
} from '../request.ts';
import { anthropic } from './anthropic.ts';
import { measure } from './blocks.ts';
import { openai } from './openai.ts';
import { NESTED_MEMBERS, RULES } from './unmetered.ts';

export const messages: Api = {
  name: 'messages',
  route: 'messages',
  path: '/messages',
  hasOutput: true,
  codecs: { anthropic, openai },
  errors: anthropicErrors,
  counting: { path: '/count_tokens', toReply: (input_tokens) => ({ input_tokens }) },
  toRequest,
};

const FORM = { limit: 'max_tokens', rules: RULES, nested: NESTED_MEMBERS };

function toRequest(bytes: Uint8Array, client: Pick<HttpExchange, 'header' | 'query'>): Result<ModelRequest, Failure> {
  const read = readLimited(readBody(bytes), FORM, wrongMemberIn);
  if (!read.ok) return read;
  const { members, request } = read.value;
  const forwardedHead = forwardedHeadOf(client);
  const input = measure(bytes.length, members);
  return ok({
    ...request,
    minOutput: minOutputOf(members.thinking),
    input,
    webSearches: webSearchesIn(members),
    store: false,
    stored: { ...NOTHING_STORED, file: input.hasStoredFile ? 'messages' : undefined },
    forwardedHead,
    hasLargerWindow: [forwardedHead.headers['anthropic-beta'], ...listOf(members.anthropic_beta)].some(isLargerWindow),
  });
}

function wrongMemberIn(members: Members): Result<never, Failure> | undefined {
  const { messages, anthropic_beta: features } = members;
  if (!Array.isArray(messages)) return invalid('"messages" must be an array.', 'messages');
  const wrong = notObjectsIn(members, 'messages', 'tools');
  if (wrong !== undefined) return wrong;
  const areTexts = isAbsent(features) || (Array.isArray(features) && features.every((one) => typeof one === 'string'));
  return areTexts ? undefined : invalid('"anthropic_beta" must be an array of texts.', 'anthropic_beta');
}

/** A feature that allows more than the usual context window (`context-1m-2025-08-07`). */
const LARGER_WINDOW = /context-?\d/i;

function isLargerWindow(feature: unknown): boolean {
  return LARGER_WINDOW.test(textOf(feature) ?? '');
}

/** Headers that choose the version and the features of the API: the provider gets them unchanged. */
const FORWARDED = ['anthropic-version', 'anthropic-beta'];

function forwardedHeadOf(client: Pick<HttpExchange, 'header' | 'query'>): ForwardedHead {
  const headers: Record<string, string> = {};
  for (const name of FORWARDED) {
    const value = client.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return { query: client.query, headers };
}
