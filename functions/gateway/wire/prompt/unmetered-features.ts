// Features that the listed prices do not cover. They are refused, unless the usage counts them and a model entry has a
// price for them (LEDGER 10).
import type { Failure } from '#core/failure/failure.ts';
import { countIn, listOf, member } from '#core/json/json.ts';
import type { Provider } from '#core/models/providers.ts';
import { elementsOf, type Member, membersOf } from '../json/json-splice.ts';

/** The members of a body by name. */
export type Members = Readonly<Record<string, unknown>>;

/** A rule of the chain. The rules run in order; the first failure is the answer. */
export type Rule = (body: Members) => Failure | undefined;

/** Service tiers at the listed price or less. `auto`: the tier that the operator chose at the provider. */
const LISTED_TIERS: ReadonlySet<unknown> = new Set(['auto', 'default', 'flex', 'on_demand']);
/**
 * Members for work that providers bill by the call and report nowhere (Together; searches of Qwen; searches and tools
 * of Groq).
 */
const BILLED_PER_CALL = ['safety_model', 'enable_search', 'search_options', 'compound_custom', 'search_settings'];
/**
 * Members that add text to the prompt which is not in the request: documents that the provider finds (Azure), a
 * template that may repeat text, and memory of another request (vLLM).
 */
const PROMPT_FROM_ELSEWHERE = ['data_sources', 'chat_template', 'kv_transfer_params'];
/** Members that move the answer to another address: the answer is billed, but its usage never reaches the gateway. */
const ASYNCHRONOUS = ['background', 'deferred'];
const REFUSED_MEMBERS = [...BILLED_PER_CALL, ...PROMPT_FROM_ELSEWHERE, ...ASYNCHRONOUS];
/** Names of some servers for the limit of an answer. These servers apply them before the limit of the reservation. */
const OTHER_LIMITS = ['n_predict', 'num_predict', 'max_new_tokens', 'max_output_tokens', 'max_gen_len', 'max_length'];
/** All names of the limit of an answer; each API has one or two of them. */
const LIMITS = [...OTHER_LIMITS, 'max_tokens', 'max_completion_tokens'];
/** Members that name other models: neither the price nor the access of the requested model would apply. */
const OTHER_MODELS = ['models', 'fallbacks', 'preset'];
/** Members whose objects contain deciding members. Each of these may occur only once, in one spelling. */
export const NESTED_MEMBERS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ['tools', ['type', 'max_uses']],
  ['plugins', ['id']],
  ['search_parameters', ['mode', 'max_search_results']],
  ['extra_body', ['google']],
  ['provider', []],
]);

/** Deciding members of every API: with them a request may cost more, or another model may answer. */
export const SHARED_DECIDING_MEMBERS: ReadonlyArray<string> = [
  ...['service_tier', 'web_search_options', ...NESTED_MEMBERS.keys()],
  ...[...REFUSED_MEMBERS, ...OTHER_MODELS],
];

/** Deciding members of chat completions and embeddings. Most requests have none of them. */
export const DECIDING_MEMBERS: ReadonlySet<string> = new Set([...SHARED_DECIDING_MEMBERS, ...OTHER_LIMITS]);

/** A request names one model, which its key may use. */
const oneModel: Rule = mustBeAbsent(OTHER_MODELS, 'must be absent: only "model" names the model that answers.');

/** The names of limits that an API with this limit does not have. */
export const otherLimitsThan = (own: string): ReadonlyArray<string> => LIMITS.filter((name) => name !== own);

/** Tools that the client runs cost only tokens. Of the tools that the provider runs, only searches are counted. */
export function toolsOfClient(isOwn: (tool: unknown) => boolean): Rule {
  return ({ tools }) =>
    listOf(tools).every((tool) => isOwn(tool) || isWebSearch(tool))
      ? undefined
      : refusal(
          'tools',
          'must be run by the client, or be web searches: the cost of other tools is not counted. Remove the other tools.',
        );
}

/** Other tiers may cost more than the listed price. */
export const listedTier: Rule = ({ service_tier: tier }) =>
  isSet(tier) && !LISTED_TIERS.has(tier)
    ? refusal('service_tier', 'must be auto, default, flex or on_demand.')
    : undefined;

/** Options of OpenRouter that do not choose the provider; others may choose a more expensive one. */
const OPTIONS = ['data_collection', 'zdr', 'max_price', 'require_parameters', 'allow_fallbacks'];
const anyProvider: Rule = ({ provider }) =>
  hasOnly(provider, OPTIONS)
    ? undefined
    : refusal(
        'provider',
        `must contain only ${OPTIONS.join(', ')}: others may choose a more expensive provider. Remove the others.`,
      );

/** The reservation covers the maximum of searches, so their limit must be a number that every parser reads alike. */
const countedSearches: Rule = ({ search_parameters: parameters, tools }) => {
  if (!isCountOrAbsent(parameters, 'max_search_results'))
    return refusal('search_parameters', 'must contain a whole number as max_search_results.');
  return listOf(tools).every((tool) => !isWebSearch(tool) || isCountOrAbsent(tool, 'max_uses'))
    ? undefined
    : refusal('tools', 'must contain a whole number as max_uses.');
};

/** The rules of every API. */
export const SHARED_RULES: ReadonlyArray<Rule> = [
  oneModel,
  // Uncounted work would be free.
  mustBeAbsent(REFUSED_MEMBERS, 'must be absent: its cost is not counted. Remove it.'),
  // Gemini's other options are searches and cached prompts.
  ({ extra_body: extra }) =>
    hasOnly(member(extra, 'google'), ['thinking_config'])
      ? undefined
      : refusal(
          'extra_body',
          'must contain nothing of google except thinking_config: the cost of other options is not counted.',
        ),
  ({ plugins }) =>
    !isSet(plugins) || (Array.isArray(plugins) && plugins.every((plugin) => member(plugin, 'id') === 'web'))
      ? undefined
      : refusal('plugins', 'must be web searches: the cost of other plugins is not counted. Remove the other plugins.'),
  countedSearches,
  anyProvider,
];

const RULES: ReadonlyArray<Rule> = [
  ...SHARED_RULES,
  listedTier,
  // A limit with another name does not limit the reservation.
  mustBeAbsent(OTHER_LIMITS, 'must be absent. Send the limit as max_tokens.'),
  toolsOfClient(isOwnTool),
];

/** The refusal of the request by these rules; undefined: none. */
export function unmeteredIn(body: Members, rules: ReadonlyArray<Rule> = RULES): Failure | undefined {
  for (const rule of rules) {
    const failure = rule(body);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

/**
 * The refusal of a member whose objects contain a deciding name twice or in another spelling. Some parsers take the
 * first of two names, or ignore case (Go): they would read another tool than the gateway.
 */
export function ambiguousIn(
  text: string,
  members: ReadonlyArray<Member>,
  nested = NESTED_MEMBERS,
): Failure | undefined {
  for (const { name, valueStart } of members) {
    const deciding = nested.get(name);
    if (deciding === undefined) continue;
    const list = { list: name, deciding, folded: new Set(deciding.map(foldName)) };
    if (elementsOf(text, valueStart).some((at) => isAmbiguous(text, at, list))) {
      return refusal(name, 'must contain each member once, in lower case. Remove the other spellings.');
    }
  }
  return undefined;
}

const COMPACT = new RegExp(spellingsOf('compact'), 'i');

/**
 * The refusal of a summary of the context: it is another answer, without a limit. The text is searched, not the object:
 * neither a repeated member nor another spelling hides the summary.
 */
export function compactionIn(text: string, members: ReadonlyArray<Member>): Failure | undefined {
  const asks = members.some(({ name, valueStart, end }) => {
    if (name !== 'context_management') return false;
    return COMPACT.test(text.slice(valueStart, end));
  });
  return asks
    ? refusal('context_management', 'must not request a compaction: no reservation covers its cost. Remove it.')
    : undefined;
}

/**
 * Types of prompt items that declare tools outside of `tools`, or that request a summary: no other rule reads these
 * items.
 */
const IN_PROMPT = ['additional_tools', 'tool_search_output', 'tool_definition', 'compaction_trigger'];
const DECLARES = new RegExp(
  String.raw`"${spellingsOf('type')}"\s*:\s*"(?:${IN_PROMPT.map(spellingsOf).join('|')})"`,
  'i',
);

/** The refusal of tools or a summary in the middle of a prompt. The text is searched, as in `compactionIn`. */
export function declaredToolsIn(text: string): Failure | undefined {
  return DECLARES.test(text)
    ? refusal('tools', 'must declare all tools: the prompt must neither declare tools nor request a summary of itself.')
    : undefined;
}

/**
 * The pattern of a word in JSON. Each letter may be small, capital (flag `i`) or escaped: a text without escapes would
 * take many times the memory.
 */
export function spellingsOf(word: string): string {
  const codeOf = (letter: string) => letter.charCodeAt(0).toString(16);
  return word.replace(/./g, (letter) => `(?:${letter}|\\\\u00(?:${codeOf(letter)}|${codeOf(letter.toUpperCase())}))`);
}

/**
 * Whether an object is ambiguous. An inner list of the same name (the tools of a namespace) is read too; nothing deeper
 * decides.
 */
function isAmbiguous(text: string, start: number, nested: NestedList, isInner = false): boolean {
  const { list, deciding, folded } = nested;
  const { members } = membersOf(text, start);
  // Nobody writes them in these objects, which may have very many members.
  if (members.some(({ name }) => LOOKALIKES.test(name))) return true;
  if (members.some(({ name }) => !deciding.includes(name) && folded.has(foldName(name)))) return true;
  if (members.length > 1 && new Set(members.map(({ name }) => foldCase(name))).size < members.length) return true;
  if (isInner || !deciding.includes(list)) return false;
  const inner = members.filter(({ name }) => name === list).flatMap(({ valueStart }) => elementsOf(text, valueStart));
  return inner.some((at) => isAmbiguous(text, at, nested, true));
}

interface NestedList {
  readonly list: string;
  readonly deciding: ReadonlyArray<string>;
  /** The deciding names, folded. */
  readonly folded: ReadonlySet<string>;
}

/**
 * The maximum length of a folded name; deciding names are shorter. Capitals of a very long name would take many times
 * its memory.
 */
const MAX_NAME = 64;
/** Nearly all names need no folding, and a body may have very many. */
const FOLDED = /^[a-z0-9_]*$/;
/** All letters beyond ASCII that fold to ASCII. A name with another letter beyond ASCII folds to no deciding name. */
const LOOKALIKES = /[\u00df\u0131\u017f\u212a\ufb00-\ufb06]/;
const IS_ASCII = /^[\0-\x7f]*$/;

/** The name without case, as Go's JSON decoder folds it (ſ is s, K is k), if that may be a deciding name. */
function foldCase(name: string): string {
  if (name.length > MAX_NAME || FOLDED.test(name)) return name;
  if (IS_ASCII.test(name)) return name.toLowerCase();
  // Folding them takes long.
  return LOOKALIKES.test(name) ? name.toUpperCase().toLowerCase() : name;
}

/** The name without case and underscores: protocol buffers (Gemini, Vertex AI) read `maxTokens` as `max_tokens`. */
export function foldName(name: string): string {
  if (name.length > MAX_NAME) return name;
  const folded = foldCase(name);
  return folded.includes('_') ? folded.replaceAll('_', '') : folded;
}

/** Web searches of a request: only model entries with a price for them may serve it. */
export interface WebSearches {
  readonly param: string;
  /** The maximum number of searches of the request. */
  readonly max: number;
  /** All searches are offline, if the provider knows that switch. */
  readonly isOffline: boolean;
}

/** The maximum number of searches that a tool without a limit makes. */
const USUAL_SEARCHES = 10;

/** The web searches of a request; undefined: none. `isOffline`: whether a tool is offline. */
export function webSearchesIn(
  body: Members,
  isOffline: (tool: unknown) => boolean = () => false,
): WebSearches | undefined {
  const { web_search_options: options, search_parameters: parameters, plugins, tools } = body;
  const searches: Array<Omit<WebSearches, 'isOffline'>> = [];
  if (isSet(options)) searches.push({ param: 'web_search_options', max: USUAL_SEARCHES });
  if (isSet(parameters) && member(parameters, 'mode') !== 'off')
    searches.push({ param: 'search_parameters', max: countIn(parameters, 'max_search_results') ?? USUAL_SEARCHES });
  for (const _ of listOf(plugins)) searches.push({ param: 'plugins', max: USUAL_SEARCHES });
  const searching = listOf(tools).filter(isWebSearch);
  for (const tool of searching) searches.push({ param: 'tools', max: countIn(tool, 'max_uses') ?? USUAL_SEARCHES });
  const [first] = searches;
  if (first === undefined) return undefined;
  const max = searches.reduce((sum, { max }) => sum + max, 0);
  return { param: first.param, max, isOffline: searches.length === searching.length && searching.every(isOffline) };
}

/** Whether the searches are offline at this provider. */
export const isOfflineAt = ({ searchesOffline }: Provider, { isOffline }: WebSearches): boolean =>
  isOffline && searchesOffline === true;

/** The searches that a model entry makes for a request. Translations omit them. */
export function webSearchesAt(
  { codec, provider }: { readonly codec: { readonly isTranslated: boolean }; readonly provider: Provider },
  searches: WebSearches | undefined,
): WebSearches | undefined {
  return searches === undefined || codec.isTranslated || isOfflineAt(provider, searches) ? undefined : searches;
}

export function webSearchRefusal({ param }: WebSearches): Failure {
  return refusal(
    param,
    'must not request a web search: no entry of this model has a price for it. Ask the platform team to set toolCosts.webSearch.',
  );
}

function isCountOrAbsent(holder: unknown, name: string): boolean {
  const value = member(holder, name);
  return value === undefined || value === null || countIn(holder, name) !== undefined;
}

function isOwnTool(tool: unknown): boolean {
  const type = member(tool, 'type');
  return type === undefined || type === 'function' || type === 'custom';
}

const WEB_SEARCH = /^(openrouter:)?web_search(_preview)?(_\d+)*$/;
/** The maximum length of a type that is matched: the repeated group would fill the stack with a type of megabytes. */
const MAX_TYPE = 64;

/**
 * Whether a tool is a web search: `web_search`, with a date after it (Anthropic's) or the name of a router before it.
 */
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
