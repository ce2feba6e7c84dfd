// Features of a Responses request that the listed prices do not pay for: refused, unless usage counts them and an entry
// names a price.
import { listOf, member, textOf } from '#core/json/json.ts';
import {
  listedTier,
  type Members,
  mustBeAbsent,
  NESTED_MEMBERS as NESTED_EVERYWHERE,
  otherLimitsThan,
  type Rule,
  SHARED_DECIDING_MEMBERS,
  SHARED_RULES,
  webSearchesIn as searchesIn,
  toolsOfClient,
  type WebSearches,
} from '../prompt/unmetered-features.ts';

/** Conversations and prompts that the provider keeps. */
const REFUSED_MEMBERS = ['conversation', 'prompt'];
const LIMITS = otherLimitsThan('max_output_tokens');
/** Tools that the client runs: they cost tokens only. */
const OWN_TOOL = /^(function|custom|local_shell|apply_patch|computer|computer_use_preview)$/;

/** Members whose objects contain deciding members, which must stand once and in one spelling. */
export const NESTED_MEMBERS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ...NESTED_EVERYWHERE,
  ['tools', ['type', 'max_uses', 'external_web_access', 'tools']],
]);

/** Members by which a request may cost more, or be answered by another model. */
export const DECIDING_MEMBERS: ReadonlyArray<string> = [
  ...SHARED_DECIDING_MEMBERS,
  ...['store', 'previous_response_id', 'context_management', ...REFUSED_MEMBERS, ...LIMITS],
];

export const RULES: ReadonlyArray<Rule> = [
  ...SHARED_RULES,
  listedTier,
  mustBeAbsent(REFUSED_MEMBERS, 'must be absent: no reservation covers what it costs.'),
  // A limit by a name that the reservation does not know is no limit.
  mustBeAbsent(LIMITS, 'must be called max_output_tokens.'),
  toolsOfClient((tool) => isOwnTool(tool) || isNamespace(tool)),
];

function isOwnTool(tool: unknown): boolean {
  const type = member(tool, 'type');
  return typeof type === 'string' && OWN_TOOL.test(type);
}

/** A named list of tools, as Codex declares them. */
function isNamespace(tool: unknown): boolean {
  return member(tool, 'type') === 'namespace' && listOf(member(tool, 'tools')).every(isOwnTool);
}

/** Dates are behind the name. Older ones (`web_search_preview`) search the network all the same. */
const OFFLINE_TOOL = /^web_search(_\d{4}_\d\d_\d\d)?$/;

/** Codex always declares web search, and switches it off: OpenAI then reads pages that it keeps. */
export function webSearchesIn(members: Members): WebSearches | undefined {
  return searchesIn(members, isOffline);
}

function isOffline(tool: unknown): boolean {
  const isKnown = OFFLINE_TOOL.test(textOf(member(tool, 'type')) ?? '');
  return isKnown && member(tool, 'external_web_access') === false;
}
