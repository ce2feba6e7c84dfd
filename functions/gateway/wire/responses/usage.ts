// Usage of a response, its web searches, and the size of output that was not counted.
import { listOf, member, textOf } from '#core/json/json.ts';
import { toUsage as fromChat, type Usage } from '#core/money/usage.ts';
import { bytesIn } from '../prompt/prompt.ts';

/**
 * The usage of a response; undefined: it does not count both sides. The names differ from those of chat completions,
 * the meaning does not.
 */
export function toUsage(response: unknown): Usage | undefined {
  const usage = member(response, 'usage');
  const counted = fromChat({
    prompt_tokens: member(usage, 'input_tokens'),
    prompt_tokens_details: member(usage, 'input_tokens_details'),
    completion_tokens: member(usage, 'output_tokens'),
    completion_tokens_details: member(usage, 'output_tokens_details'),
    total_tokens: member(usage, 'total_tokens'),
    cost: member(usage, 'cost'),
    cost_in_usd_ticks: member(usage, 'cost_in_usd_ticks'),
  });
  const webSearches = listOf(member(response, 'output')).filter(isSearch).length;
  return counted && { ...counted, webSearches: webSearches || undefined };
}

/** Whether an item is a billed search. Pages that a model opens, and searches inside them, are not billed. */
export function isSearch(item: unknown): boolean {
  const action = member(member(item, 'action'), 'type');
  return member(item, 'type') === 'web_search_call' && (action === undefined || action === 'search');
}

/** Bytes of an item that the model wrote: of its texts, and of those of its parts, at any depth. */
export function sizeOf(item: unknown): number {
  let size = 0;
  const left = [item];
  while (left.length > 0) {
    const next = left.pop();
    for (const name of TEXTS) size += bytesIn(textOf(member(next, name)) ?? '');
    for (const name of PARTS) for (const part of listOf(member(next, name))) left.push(part);
  }
  return size;
}

const TEXTS = ['name', 'arguments', 'input', 'text', 'refusal'];
const PARTS = ['content', 'summary'];
