// Features of a Messages request that the listed prices do not pay for: refused, unless usage counts them and an entry names a price.
import { countIn, member } from '#core/json.ts';
import {
  absent,
  anyProvider,
  isAsked,
  isWebSearch,
  OTHER_MODELS,
  oneModel,
  otherLimitsThan,
  type Rule,
  refusal,
  toolsOfClient,
  USUAL_SEARCHES,
  type WebSearches,
} from '../unmetered-features.ts';

/** Work beyond the prompt and its answer: tools on other servers, containers, answers that are fetched later, conversations that the provider keeps. */
const REFUSED = [
  ...['mcp_servers', 'container', 'background', 'deferred'],
  ...['thread', 'compaction', 'billing_policy', 'fallback_credit_token'],
];
const LIMITS = otherLimitsThan('max_tokens');
const TIERS: ReadonlySet<unknown> = new Set(['auto', 'standard_only', 'standard', 'default']);
/** Tools that the client runs, and searches among declared tools: they cost tokens only. */
const OWN_TOOL = /^(function|custom|(bash|text_editor|computer|memory)_\d+|tool_search_tool_(regex|bm25)(_\d+)?)$/;

/** Members whose objects contain deciding members, which must stand once and in one spelling. */
export const NESTED: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ['tools', ['type', 'max_uses']],
  ['thinking', ['type', 'budget_tokens']],
  ['provider', []],
]);

/** Members by which a request may cost more, or be answered by another model. */
export const DECIDING: ReadonlyArray<string> = [
  ...['service_tier', 'speed', 'inference_geo', 'context_management', ...NESTED.keys()],
  ...[...REFUSED, ...OTHER_MODELS, ...LIMITS],
];

export const RULES: ReadonlyArray<Rule> = [
  oneModel,
  // Other tiers, speeds and places cost more than the listed price.
  ({ service_tier: tier }) =>
    isAsked(tier) && !TIERS.has(tier) ? refusal('service_tier', 'must be auto or standard_only.') : undefined,
  ({ speed }) => (isAsked(speed) && speed !== 'standard' ? refusal('speed', 'must be standard.') : undefined),
  ({ inference_geo: geo }) =>
    isAsked(geo) && geo !== 'global' ? refusal('inference_geo', 'must be absent or global.') : undefined,
  absent(REFUSED, 'must be absent: no hold covers what it costs.'),
  // A limit by a name that the hold does not know is no limit.
  absent(LIMITS, 'must be called max_tokens.'),
  toolsOfClient(isOwnTool),
  anyProvider,
];

function isOwnTool(tool: unknown): boolean {
  const type = member(tool, 'type');
  return type === undefined || type === null || (typeof type === 'string' && OWN_TOOL.test(type));
}

export function webSearchesIn(tools: ReadonlyArray<unknown>): WebSearches | undefined {
  const searches = tools.filter(isWebSearch);
  if (searches.length === 0) return undefined;
  return { param: 'tools', max: searches.reduce<number>((sum, tool) => sum + usesOf(tool), 0) };
}

function usesOf(tool: unknown): number {
  return countIn(tool, 'max_uses') ?? USUAL_SEARCHES;
}
