// Features of a Messages request that the listed prices do not cover. They are refused, unless the usage counts them
// and a model entry has a price for them.
import { member } from '#core/json/json.ts';
import {
  isSet,
  mustBeAbsent,
  NESTED_MEMBERS as NESTED_EVERYWHERE,
  otherLimitsThan,
  type Rule,
  refusal,
  SHARED_DECIDING_MEMBERS,
  SHARED_RULES,
  toolsOfClient,
} from '../prompt/unmetered-features.ts';

/** Work beyond the prompt and its answer: tools on other servers, containers, conversations at the provider. */
const REFUSED_MEMBERS = [
  ...['mcp_servers', 'container', 'thread', 'compaction', 'billing_policy', 'fallback_credit_token'],
];
const LIMITS = otherLimitsThan('max_tokens');
const TIERS: ReadonlySet<unknown> = new Set(['auto', 'standard_only', 'standard', 'default']);
/** Tools that the client runs, and searches among declared tools: they cost only tokens. */
const OWN_TOOL = /^(function|custom|(bash|text_editor|computer|memory)_\d+|tool_search_tool_(regex|bm25)(_\d+)?)$/;

/** Members whose objects contain deciding members. Each of these may occur only once, in one spelling. */
export const NESTED_MEMBERS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ...NESTED_EVERYWHERE,
  ['thinking', ['type', 'budget_tokens']],
]);

/** Deciding members: with them a request may cost more, or another model may answer. */
export const DECIDING_MEMBERS: ReadonlyArray<string> = [
  ...SHARED_DECIDING_MEMBERS,
  ...[
    'speed',
    'inference_geo',
    'context_management',
    'anthropic_beta',
    ...NESTED_MEMBERS.keys(),
    ...REFUSED_MEMBERS,
    ...LIMITS,
  ],
];

export const RULES: ReadonlyArray<Rule> = [
  ...SHARED_RULES,
  // Other tiers, speeds and places cost more than the listed price.
  ({ service_tier: tier }) =>
    isSet(tier) && !TIERS.has(tier) ? refusal('service_tier', 'must be auto or standard_only.') : undefined,
  ({ speed }) => (isSet(speed) && speed !== 'standard' ? refusal('speed', 'must be standard.') : undefined),
  ({ inference_geo: geo }) =>
    isSet(geo) && geo !== 'global' ? refusal('inference_geo', 'must be absent or global.') : undefined,
  mustBeAbsent(REFUSED_MEMBERS, 'must be absent: no reservation covers its cost. Remove it.'),
  // A limit with another name does not limit the reservation.
  mustBeAbsent(LIMITS, 'must be absent. Send the limit as max_tokens.'),
  toolsOfClient(isOwnTool),
];

function isOwnTool(tool: unknown): boolean {
  const type = member(tool, 'type');
  return type === undefined || type === null || (typeof type === 'string' && OWN_TOOL.test(type));
}
