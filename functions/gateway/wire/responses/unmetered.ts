// Features of a Responses request that the listed prices do not cover. They are refused, unless the usage counts them
// and a model entry has a price for them.
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

/** Conversations and prompts at the provider. */
const REFUSED_MEMBERS = ['conversation', 'prompt'];
const LIMITS = otherLimitsThan('max_output_tokens');
/** Tools that the client runs: they cost only tokens. */
const OWN_TOOL = /^(function|custom|local_shell|apply_patch|computer|computer_use_preview)$/;

/** Members whose objects contain deciding members. Each of these may occur only once, in one spelling. */
export const NESTED_MEMBERS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ...NESTED_EVERYWHERE,
  ['tools', ['type', 'max_uses', 'external_web_access', 'tools']],
]);

/** Deciding members: with them a request may cost more, or another model may answer. */
export const DECIDING_MEMBERS: ReadonlyArray<string> = [
  ...SHARED_DECIDING_MEMBERS,
  ...['store', 'previous_response_id', 'context_management', ...REFUSED_MEMBERS, ...LIMITS],
];

export const RULES: ReadonlyArray<Rule> = [
  ...SHARED_RULES,
  listedTier,
  mustBeAbsent(REFUSED_MEMBERS, 'must be absent: no reservation covers its cost. Remove it.'),
  // A limit with another name does not limit the reservation.
  mustBeAbsent(LIMITS, 'must be absent. Send the limit as max_output_tokens.'),
  toolsOfClient((tool) => isOwnTool(tool) || isNamespace(tool)),
];

function isOwnTool(tool: unknown): boolean {
  const type = member(tool, 'type');
  return typeof type === 'string' && OWN_TOOL.test(type);
}

/** Whether a tool is a named list of tools, as Codex declares them. */
function isNamespace(tool: unknown): boolean {
  return member(tool, 'type') === 'namespace' && listOf(member(tool, 'tools')).every(isOwnTool);
}

/**
 * The type of a search that may be offline, with or without a date. Older types (`web_search_preview`) always use the
 * network.
 */
const OFFLINE_TOOL = /^web_search(_\d{4}_\d\d_\d\d)?$/;

/**
 * The web searches of a request. Codex always declares web search, and switches it off: OpenAI then reads stored pages.
 */
export function webSearchesIn(members: Members): WebSearches | undefined {
  return searchesIn(members, isOffline);
}

function isOffline(tool: unknown): boolean {
  const isKnown = OFFLINE_TOOL.test(textOf(member(tool, 'type')) ?? '');
  return isKnown && member(tool, 'external_web_access') === false;
}
