// What does a provider of the Responses API say in a test?

import { toMarkedId } from '../../functions/gateway/request/stored-responses.ts';
import { modelEntryMarkOf } from '../../functions/gateway/targets/affinity.ts';
import { event } from './anthropic.ts';
import { mac } from './stage.ts';

const USAGE = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };

export function response(text: string, more: object = {}): string {
  const content = [{ type: 'output_text', text, annotations: [] }];
  const output = [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }];
  return JSON.stringify({ id: 'resp_1', object: 'response', status: 'completed', output, usage: USAGE, ...more });
}

const FRAME = { id: 'resp_1', object: 'response', model: 'real', output: [] };

export const CREATED = event('response.created', {
  sequence_number: 0,
  response: { ...FRAME, status: 'in_progress', usage: null },
});

const ITEM = { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] };

export const ADDED = event('response.output_item.added', { sequence_number: 1, output_index: 0, item: ITEM });

export function deltas(...texts: ReadonlyArray<string>): string[] {
  const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  return texts.map((delta, index) => event('response.output_text.delta', { sequence_number: 2 + index, ...at, delta }));
}

export const COMPLETED = event('response.completed', {
  sequence_number: 9,
  response: { ...FRAME, status: 'completed', usage: { input_tokens: 10, output_tokens: 3, total_tokens: 13 } },
});

/** An id as the VirtualKey of this scope gets it, of a response that this entry made. */
export function markedId(id: string, identifier = 'gpt', scopeId = 'key-scope'): string {
  const by = modelEntryMarkOf({ identifier, weight: 1, priority: 0 });
  return toMarkedId(mac, { secret: `secret of ${scopeId}` }, { id, modelEntryMark: by });
}
