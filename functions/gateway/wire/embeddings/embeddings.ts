// The embeddings API: texts or tokens in batches. Only the input is charged. Bytes pass through.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { fromUtf8 } from '#core/json/bytes.ts';
import { member, parseJson } from '#core/json/json.ts';
import { costIn, NO_TOKENS, readCount, type Usage } from '#core/money/usage.ts';
import type { Api } from '../api.ts';
import { type Codec, type Reply, toCall } from '../codec.ts';
import { openaiErrors } from '../dialects/error-format.ts';
import { readError, readJson, routeToOpenai } from '../dialects/openai-dialect.ts';
import { spliceBytes } from '../json/json-splice.ts';
import { bytesIn, type PromptSize } from '../prompt/prompt.ts';
import { NOTHING_STORED } from '../prompt/stored-state.ts';
import { DECIDING_MEMBERS, mustBeAbsent, type Rule, unmeteredIn } from '../prompt/unmetered-features.ts';
import { invalid, lookalikesOf, type ModelRequest, type RequestBody, readBody } from '../request.ts';
import { measureInputs } from './inputs.ts';

const codec: Codec = {
  isTranslated: false,
  routeTo: (address) => routeToOpenai(address, '/embeddings'),
  toCall: (request, recipient) => {
    const set = [['model', JSON.stringify(recipient.endpoint.entry.model)]] as const;
    const { body } = request;
    const changes = { set, drop: lookalikesIn(body.object), once: OWN_MEMBERS };
    return ok(toCall(request, recipient, spliceBytes(body, body.object, changes)));
  },
  readReply,
  readEdges,
  readError,
};

export const embeddings: Api = {
  name: 'embeddings',
  route: 'embeddings',
  path: '/embeddings',
  hasOutput: false,
  codecs: { openai: codec },
  errors: openaiErrors,
  toRequest,
};

/** Members in which some servers read images by address: their size does not show their cost. */
const MEDIA = ['messages', 'images', 'inputs', 'content', 'contents'];
const INPUT_ALONE: Rule = mustBeAbsent(MEDIA, 'must be absent: only "input" is embedded. Send the input there.');
const OWN_MEMBERS: ReadonlySet<string> = new Set(['model', 'input', ...MEDIA, ...DECIDING_MEMBERS]);
const lookalikesIn = lookalikesOf(OWN_MEMBERS);

function toRequest(bytes: Uint8Array): Result<ModelRequest, Failure> {
  const parsed = readBody(bytes);
  if (!parsed.ok) return parsed;
  const { members, ...shared } = parsed.value;
  const { body } = shared;
  const inputs = measureInputs(members.input);
  if (inputs === undefined) return invalid('"input" must be a text, an array of texts, or tokens.', 'input');
  const unmetered = INPUT_ALONE(members) ?? unmeteredIn(members);
  if (unmetered !== undefined) return err(unmetered);
  const input = withOthers(inputs, body);
  return ok({
    ...shared,
    stream: false,
    streamOptions: undefined,
    includeUsage: false,
    webSearches: undefined,
    n: 1,
    limits: {},
    limit: 0,
    minOutput: 0,
    input,
    stored: NOTHING_STORED,
  });
}

/**
 * Adds the other members to the size, because a server may embed them too: each byte may be a token, and an input of
 * its own.
 */
function withOthers(inputs: PromptSize, { text, object }: Pick<RequestBody, 'text' | 'object'>): PromptSize {
  const others = object.members.filter(({ name }) => name !== 'model' && name !== 'input');
  const bytes = others.reduce((sum, { valueStart, end }) => sum + bytesIn(text.slice(valueStart, end)), 0);
  return { ...inputs, maxTokens: inputs.maxTokens + BigInt(bytes), prompts: inputs.prompts + bytes };
}

/** Bytes of the beginning and of the end of a reply: one of them contains the usage. */
const EDGE = 1024;
const VECTORS = /"data"\s*:\s*\[/;

/** The reply without its vectors: the bytes between the first bracket and the last are not read. */
function readEdges(bytes: Uint8Array): Reply | undefined {
  const beginning = fromUtf8(bytes.subarray(0, EDGE));
  const end = fromUtf8(bytes.subarray(-EDGE));
  const vectors = VECTORS.exec(beginning);
  if (vectors === null || !end.includes(']')) return undefined;
  const opened = beginning.slice(0, vectors.index + vectors[0].length);
  const usage = toUsage(member(parseJson(opened + end.slice(end.lastIndexOf(']'))), 'usage'));
  return usage && toReply(bytes, usage);
}

function readReply(bytes: Uint8Array): Reply | undefined {
  const { body, reply } = readJson(bytes);
  if (!Array.isArray(member(reply, 'data'))) return undefined;
  return toReply(body, toUsage(member(reply, 'usage')));
}

function toReply(body: Reply['body'], usage: Usage | undefined): Reply {
  return { body, usage, size: () => ({ outputBytes: 0, media: 0 }) };
}

/** The usage of a reply. Some providers count only the total. A count of zero is ignored. */
function toUsage(usage: unknown): Usage | undefined {
  const input =
    readCount(usage, 'prompt_tokens') ?? readCount(usage, 'total_tokens') ?? readCount(usage, 'input_tokens');
  return input === undefined || input === 0 ? undefined : { ...NO_TOKENS, input, cost: costIn(usage) };
}
