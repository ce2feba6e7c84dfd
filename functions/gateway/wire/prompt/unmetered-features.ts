// Features of a request that the listed prices do not pay for: refused, unless usage counts them and an entry names a
// price (LEDGER 10).
import type { Failure } from '#core/failure/failure.ts';
import { countIn, listOf, member } from '#core/json/json.ts';
import type { Provider } from '#core/models/providers.ts';
import { elementsOf, type Member, membersOf } from '../json/json-splice.ts';

/** The members of a body by name. */
export type Members = Readonly<Record<string, unknown>>;

/** A rule of the chain. The rules run in order; the first failure is the answer. */
export type Rule = (body: Members) => Failure | undefined;

/** Service tiers at the listed price or less; `auto` is the tier that the operator has chosen at the provider. */
const LISTED_TIERS: ReadonlySet<unknown> = new Set(['auto', 'default', 'flex', 'on_demand']);
/** Work that providers bill by the call and count nowhere: Together; searches of Qwen, searches and tools of Groq. */
const BILLED_PER_CALL = ['safety_model', 'enable_search', 'search_options', 'compound_custom', 'search_settings'];
/**
 * Members that add text to the prompt which is not in the request: documents found by the provider (Azure), a template
 * that repeats, and what another request left in memory (vLLM).
 */
const PROMPT_FROM_ELSEWHERE = ['data_sources', 'chat_template', 'kv_transfer_params'];
/** Members that defer the answer to another address: the answer is billed, and its usage never reaches the gateway. */
const ASYNCHRONOUS = ['background', 'deferred'];
const REFUSED_MEMBERS = [...BILLED_PER_CALL, ...PROMPT_FROM_ELSEWHERE, ...ASYNCHRONOUS];
/** Other servers' names for the limit of an answer, which they apply before the one that the reservation was made for. */
const OTHER_LIMITS = ['n_predict', 'num_predict', 'max_new_tokens', 'max_output_tokens', 'max_gen_len', 'max_length'];
/** Names of the limit among which an API has its own. */
const LIMITS = [...OTHER_LIMITS, 'max_tokens', 'max_completion_tokens'];
/** Members that name other models to answer: neither the price of the requested model nor the key's list would hold. */
const OTHER_MODELS = ['models', 'fallbacks', 'preset'];
/** Members whose objects contain deciding members, which must stand once and in one spelling. */
export const NESTED_MEMBERS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ['tools', ['type', 'max_uses']],
  ['plugins', ['id']],
  ['search_parameters', ['mode', 'max_search_results']],
  ['extra_body', ['google']],
  ['provider', []],
]);

/** Members by which a request of any API may cost more, or be answered by another model. */
export const SHARED_DECIDING_MEMBERS: ReadonlyArray<string> = [
  ...['service_tier', 'web_search_options', ...NESTED_MEMBERS.keys()],
  ...[...REFUSED_MEMBERS, ...OTHER_MODELS],
];

/** The same of chat completions and embeddings. Most requests have none of them. */
export const DECIDING_MEMBERS: ReadonlySet<string> = new Set([...SHARED_DECIDING_MEMBERS, ...OTHER_LIMITS]);

/** A request is for one model, which its key may use. */
const oneModel: Rule = mustBeAbsent(OTHER_MODELS, 'must be absent: "model" alone says who answers.');

/** Names of limits that an API with this one does not know. */
export const otherLimitsThan = (own: string): ReadonlyArray<string> => LIMITS.filter((name) => name !== own);

/** Tools that the client runs cost tokens only. Of the tools that the provider runs only searches are counted. */
export function toolsOfClient(isOwn: (tool: unknown) => boolean): Rule {
  return ({ tools }) =>
    listOf(tools).every((tool) => isOwn(tool) || isWebSearch(tool))
      ? undefined
      : refusal('tools', 'must be run by the client, or be web searches: no usage tells what others cost.');
}

/** Another tier may cost more than the listed price. */
export const listedTier: Rule = ({ service_tier: tier }) =>
  isSet(tier) && !LISTED_TIERS.has(tier)
    ? refusal('service_tier', 'must be auto, default, flex or on_demand.')
    : undefined;

/** OpenRouter's options that choose a provider may choose a more expensive one. */
const anyProvider: Rule = ({ provider }) =>
  hasOnly(provider, ['data_collection', 'zdr', 'max_price', 'require_parameters', 'allow_fallbacks'])
    ? undefined
    : refusal('provider', 'must not choose who answers: another may be dearer.');

/** Searches are held for at their most, so a limit of them must be one that every parser reads alike. */
const countedSearches: Rule = ({ search_parameters: parameters, tools }) => {
  if (!isCountOrAbsent(parameters, 'max_search_results'))
    return refusal('search_parameters', 'must hold a whole number as max_search_results.');
  return listOf(tools).every((tool) => !isWebSearch(tool) || isCountOrAbsent(tool, 'max_uses'))
    ? undefined
    : refusal('tools', 'must hold a whole number as max_uses.');
};

/** The rules of every API. */
export const SHARED_RULES: ReadonlyArray<Rule> = [
  oneModel,
  // Work that no usage counts would be free.
  mustBeAbsent(REFUSED_MEMBERS, 'must be absent: no usage tells what it costs.'),
  // Gemini's other options there are searches and cached prompts.
  ({ extra_body: extra }) =>
    hasOnly(member(extra, 'google'), ['thinking_config'])
      ? undefined
      : refusal('extra_body', 'must hold nothing of google but thinking_config: no usage tells what else costs.'),
  ({ plugins }) =>
    !isSet(plugins) || (Array.isArray(plugins) && plugins.every((plugin) => member(plugin, 'id') === 'web'))
      ? undefined
      : refusal('plugins', 'must be web searches: no usage tells what others cost.'),
  countedSearches,
  anyProvider,
];

const RULES: ReadonlyArray<Rule> = [
  ...SHARED_RULES,
  listedTier,
  // A limit by a name that the reservation does not know is no limit.
  mustBeAbsent(OTHER_LIMITS, 'must be called max_tokens.'),
  toolsOfClient(isOwnTool),
];

/** The refusal of the request, whatever the entry. */
export function unmeteredIn(body: Members, rules: ReadonlyArray<Rule> = RULES): Failure | undefined {
  for (const rule of rules) {
    const failure = rule(body);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

/**
 * A member whose objects contain a deciding name twice or in another spelling: a parser that takes the first of two
 * names, or ignores case as Go's does, would read another tool than we do.
 */
export function ambiguousIn(
  text: string,
  members: ReadonlyArray<Member>,
  nested = NESTED_MEMBERS,
): Failure | undefined {
  for (const { name, valueStart } of members) {
    const deciding = nested.get(name);
    if (
      deciding !== undefined &&
      elementsOf(text, valueStart).some((at) => isAmbiguous(text, at, { list: name, deciding }))
    ) {
      return refusal(name, 'must name each member once, and in lower case.');
    }
  }
  return undefined;
}

const COMPACT = new RegExp(spellingsOf('compact'), 'i');

/**
 * A summary of the context is another answer, which no limit bounds. The text is searched, not the object: neither a
 * member that stands twice nor another spelling hides it.
 */
export function compactionIn(text: string, members: ReadonlyArray<Member>): Failure | undefined {
  const asks = members.some(({ name, valueStart, end }) => {
    if (name !== 'context_management') return false;
    return COMPACT.test(text.slice(valueStart, end));
  });
  return asks
    ? refusal('context_management', 'must hold no compaction: no reservation covers what it costs.')
    : undefined;
}

/** Types of what declares tools in a prompt, where no rule reads them, or asks there for a summary. */
const IN_PROMPT = ['additional_tools', 'tool_search_output', 'tool_definition', 'compaction_trigger'];
const DECLARES = new RegExp(
  String.raw`"${spellingsOf('type')}"\s*:\s*"(?:${IN_PROMPT.map(spellingsOf).join('|')})"`,
  'i',
);

/** Tools, or a summary, in the middle of a prompt. The text is searched, as above. */
export function declaredToolsIn(text: string): Failure | undefined {
  return DECLARES.test(text)
    ? refusal('tools', 'must declare all tools: the prompt must declare none, and ask for no summary of itself.')
    : undefined;
}

/**
 * The pattern of a word in JSON, each of its letters small, capital (flag `i`) or escaped: a text without its escapes
 * would take many times the memory.
 */
export function spellingsOf(word: string): string {
  const codeOf = (letter: string) => letter.charCodeAt(0).toString(16);
  return word.replace(/./g, (letter) => `(?:${letter}|\\\\u00(?:${codeOf(letter)}|${codeOf(letter.toUpperCase())}))`);
}

/** A deciding list of the same name inside (the tools of a namespace) is read too; nothing deeper decides. */
function isAmbiguous(text: string, start: number, { list, deciding }: NestedList, isInner = false): boolean {
  const { members } = membersOf(text, start);
  const names = members.map(({ name }) => name);
  const folded = names.map(foldCase);
  if (new Set(folded).size < names.length) return true;
  const decidingFolded = deciding.map(foldName);
  if (names.some((name) => !deciding.includes(name) && decidingFolded.includes(foldName(name)))) return true;
  if (isInner || !deciding.includes(list)) return false;
  const inner = members.filter(({ name }) => name === list).flatMap(({ valueStart }) => elementsOf(text, valueStart));
  return inner.some((at) => isAmbiguous(text, at, { list, deciding }, true));
}

interface NestedList {
  readonly list: string;
  readonly deciding: ReadonlyArray<string>;
}

/** No deciding name is longer. Capitals of a very long one would take many times its memory. */
const MAX_NAME = 64;

/** The folding that Go's JSON decoder uses (ſ is s, K is k). */
function foldCase(name: string): string {
  return name.length > MAX_NAME ? name : name.toUpperCase().toLowerCase();
}

/** The same, and that of protocol buffers (Gemini, Vertex AI), which read `maxTokens` as `max_tokens`. */
export function foldName(name: string): string {
  return name.length > MAX_NAME ? name : foldCase(name).replaceAll('_', '');
}

/** Web searches of a request: only entries with a price for them may serve it. */
export interface WebSearches {
  readonly param: string;
  /** Searches of the request, at most. */
  readonly max: number;
  /** All of them are kept from the network, by a provider that knows the switch. */
  readonly isOffline: boolean;
}

/** Searches of one request that names no limit of its own. */
const USUAL_SEARCHES = 10;

/** `isOffline`: a tool that is kept from the network. */
export function webSearchesIn(
  body: Members,
  isOffline: (tool: unknown) => boolean = () => false,
): WebSearches | undefined {
  const { web_search_options: options, search_parameters: parameters, plugins, tools } = body;
  const asked: Array<Omit<WebSearches, 'isOffline'>> = [];
  if (isSet(options)) asked.push({ param: 'web_search_options', max: USUAL_SEARCHES });
  if (isSet(parameters) && member(parameters, 'mode') !== 'off')
    asked.push({ param: 'search_parameters', max: countIn(parameters, 'max_search_results') ?? USUAL_SEARCHES });
  for (const _ of listOf(plugins)) asked.push({ param: 'plugins', max: USUAL_SEARCHES });
  const searching = listOf(tools).filter(isWebSearch);
  for (const tool of searching) asked.push({ param: 'tools', max: countIn(tool, 'max_uses') ?? USUAL_SEARCHES });
  const [first] = asked;
  if (first === undefined) return undefined;
  const max = asked.reduce((sum, { max }) => sum + max, 0);
  return { param: first.param, max, isOffline: asked.length === searching.length && searching.every(isOffline) };
}

/** Whether searches are kept from the network. */
export const isOfflineAt = ({ searchesOffline }: Provider, { isOffline }: WebSearches): boolean =>
  isOffline && searchesOffline === true;

/** The searches of a request that an entry makes for it. Translations leave them out. */
export function webSearchesAt(
  { codec, provider }: { readonly codec: { readonly isTranslated: boolean }; readonly provider: Provider },
  searches: WebSearches | undefined,
): WebSearches | undefined {
  return searches === undefined || codec.isTranslated || isOfflineAt(provider, searches) ? undefined : searches;
}

export function webSearchRefusal({ param }: WebSearches): Failure {
  return refusal(param, 'must hold no web search: no entry of this model names a price for it (toolCosts.webSearch).');
}

function isCountOrAbsent(of: unknown, name: string): boolean {
  const value = member(of, name);
  return value === undefined || value === null || countIn(of, name) !== undefined;
}

function isOwnTool(tool: unknown): boolean {
  const type = member(tool, 'type');
  return type === undefined || type === 'function' || type === 'custom';
}

const WEB_SEARCH = /^(openrouter:)?web_search(_preview)?(_\d+)*$/;
/** No such type is longer, and the repeated group would use up the stack in one of megabytes. */
const MAX_TYPE = 64;

/** `web_search`, and with a date behind it (Anthropic's) or a router's name before it. */
function isWebSearch(tool: unknown): boolean {
  const type = member(tool, 'type');
  return typeof type === 'string' && type.length <= MAX_TYPE && WEB_SEARCH.test(type);
}

export function mustBeAbsent(names: ReadonlyArray<string>, message: string): Rule {
  return (body) => {
    const name = names.find((name) => isSet(body[name]));
    return name === undefined ? undefined : refusal(name, message);
  };
}

export function refusal(param: string, message: string): Failure {
  return { code: 'invalid_request', param, message: `"${param}" ${message}` };
}

export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

function hasOnly(value: unknown, names: ReadonlyArray<string>): boolean {
  if (!isSet(value)) return true;
  return (
    typeof value === 'object' && !Array.isArray(value) && Object.keys(value ?? {}).every((name) => names.includes(name))
  );
}
