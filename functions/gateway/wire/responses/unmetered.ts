// Features of a Responses request that the listed prices do not pay for: refused, unless usage counts them and an entry names a price.
import { listOf, member } from '#core/json.ts';
import {
  absent,
  anyProvider,
  isAsked,
  isWebSearch,
  listedTier,
  OTHER_MODELS,
  oneModel,
  otherLimitsThan,
  type Rule,
  refusal,
  toolsOfClient,
  USUAL_SEARCHES,
  type WebSearches,
} from '../unmetered-features.ts';

/** Answers that are fetched later, and conversations and prompts that the provider keeps. */
const REFUSED = ['background', 'deferred', 'conversation', 'prompt'];
const LIMITS = otherLimitsThan('max_output_tokens');
/** Tools that the client runs: they cost tokens only. */
const OWN_TOOL = /^(function|custom|local_shell|apply_patch|computer|computer_use_preview)$/;

/** Members whose objects contain deciding members, which must stand once and in one spelling. */
export const NESTED: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ['tools', ['type', 'external_web_access', 'tools']],
  ['provider', []],
]);

/** Members by which a request may cost more, or be answered by another model. */
export const DECIDING: ReadonlyArray<string> = [
  ...['service_tier', 'store', 'previous_response_id', 'context_management', ...NESTED.keys()],
  ...[...REFUSED, ...OTHER_MODELS, ...LIMITS],
];

export const RULES: ReadonlyArray<Rule> = [
  oneModel,
  listedTier,
  absent(REFUSED, 'must be absent: no hold covers what it costs.'),
  ({ store }) =>
    store === true ? refusal('store', 'must be false or absent: the gateway keeps no responses.') : undefined,
  // A limit by a name that the hold does not know is no limit.
  absent(LIMITS, 'must be called max_output_tokens.'),
  toolsOfClient((tool) => isOwnTool(tool) || isNamespace(tool)),
  anyProvider,
];

function isOwnTool(tool: unknown): boolean {
  const type = member(tool, 'type');
  return typeof type === 'string' && OWN_TOOL.test(type);
}

/** A named list of tools, as Codex declares them. */
function isNamespace(tool: unknown): boolean {
  return member(tool, 'type') === 'namespace' && listOf(member(tool, 'tools')).every(isOwnTool);
}

/** Codex always declares web search, and switches it off. */
export function webSearchesIn(tools: ReadonlyArray<unknown>): WebSearches | undefined {
  const searches = tools.filter((tool) => isWebSearch(tool) && member(tool, 'external_web_access') !== false);
  return isAsked(searches) ? { param: 'tools', max: searches.length * USUAL_SEARCHES } : undefined;
}
