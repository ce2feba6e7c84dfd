// Does a request ask its provider for what no usage tells and no listed price pays? A key with a budget is refused that, never given it.
import type { Failure } from '#core/failure.ts';
import { listOf, member } from './wire/json.ts';

type Members = Readonly<Record<string, unknown>>;

/** Services at the listed price or less; `auto` is what the operator has chosen at the provider. */
const LISTED_TIERS: ReadonlySet<unknown> = new Set(['auto', 'default', 'flex', 'on_demand']);
/** Searches, documents that are read, and other work that providers bill by the call (OpenAI, Perplexity, xAI, OpenRouter, Together). */
const BY_THE_CALL = ['web_search_options', 'search_parameters', 'plugins', 'safety_model'];
/** What puts text into the prompt that is not in the request: documents that the provider finds (Azure), a template that repeats (vLLM). */
const PROMPT_FROM_ELSEWHERE = ['data_sources', 'chat_template'];
/** Its answer comes later, from another address: it is billed, and nobody here hears how much. */
const LATER = ['background', 'deferred'];
/** What some servers call the limit of an answer, and heed before the name by which it was held for. */
const OTHER_LIMITS = ['n_predict', 'num_predict', 'max_new_tokens', 'max_output_tokens', 'max_gen_len', 'max_length'];
/** Tools that the client runs. Any other is run by the provider. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set([undefined, 'function', 'custom']);
/** Of OpenRouter's `provider`: what does not choose one that may be dearer. */
const UNCHOOSING: ReadonlySet<string> = new Set([
  'data_collection',
  'zdr',
  'max_price',
  'require_parameters',
  'allow_fallbacks',
]);
/** Other models to answer in place of the one that was asked for: neither its price nor the key's list would hold. */
const OTHER_MODELS = ['models', 'fallbacks', 'preset'];

/** Members by which a request may cost more, or be answered by another model. */
export const SURCHARGED: ReadonlyArray<string> = [
  ...['service_tier', 'provider', 'tools', 'extra_body'],
  ...[...BY_THE_CALL, ...PROMPT_FROM_ELSEWHERE, ...LATER, ...OTHER_MODELS, ...OTHER_LIMITS],
];

/** Refused to everybody: a request is for one model, which its key may use. */
export function otherModelIn(body: Members): Failure | undefined {
  const name = OTHER_MODELS.find((name) => isAsked(body[name]));
  return name === undefined ? undefined : refusal(name, 'must be absent: "model" alone says who answers.');
}

/** Refused to a key with a budget. */
export function surchargeIn(body: Members): Failure | undefined {
  const { service_tier: tier, provider, tools } = body;
  if (isAsked(tier) && !LISTED_TIERS.has(tier)) {
    return refusal('service_tier', 'must be auto, default, flex or on_demand for a key with a budget.');
  }
  const name = BESIDE.find((name) => isAsked(body[name]));
  if (name !== undefined) return refusal(name, `must be absent for a key with a budget: ${WHY}.`);
  // Gemini's: what else it takes there are searches, and prompts that were kept before.
  const google = member(body.extra_body, 'google');
  if (isAsked(google) && !(isObject(google) && Object.keys(google).every((name) => name === 'thinking_config'))) {
    return refusal('extra_body', 'must hold nothing of google but thinking_config for a key with a budget.');
  }
  const limit = OTHER_LIMITS.find((name) => isAsked(body[name]));
  if (limit !== undefined) return refusal(limit, 'must be called max_tokens for a key with a budget.');
  if (listOf(tools).some((tool) => !OWN_TOOLS.has(member(tool, 'type')))) {
    return refusal('tools', `must be functions, or custom, for a key with a budget: ${WHY}.`);
  }
  if (isAsked(provider) && !(isObject(provider) && Object.keys(provider).every((name) => UNCHOOSING.has(name)))) {
    return refusal('provider', 'must not choose who answers, for a key with a budget: it may be dearer.');
  }
  return undefined;
}

const BESIDE = [...BY_THE_CALL, ...PROMPT_FROM_ELSEWHERE, ...LATER];
const WHY = 'it is billed beside what the request holds';

function refusal(param: string, message: string): Failure {
  return { code: 'invalid_request', param, message: `"${param}" ${message}` };
}

function isAsked(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
