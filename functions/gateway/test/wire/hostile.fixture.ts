// JSON in which the names that translations read is in the wrong places, with the wrong values.
import * as fc from 'fast-check';

const names = fc.constantFrom(
  'type',
  'role',
  'content',
  'text',
  'message',
  'usage',
  'delta',
  'index',
  'id',
  'name',
  'input',
  'partial_json',
  'thinking',
  'stop_reason',
  'content_block',
  'error',
  'image_url',
  'url',
  'file',
  'file_data',
  'tool_calls',
  'function',
  'arguments',
  'input_tokens',
  'output_tokens',
  'cache_creation',
  'choices',
  'finish_reason',
  'refusal',
  'prompt_tokens',
  'completion_tokens',
  'tool_use_id',
  'source',
  'data',
  'system',
  'input_schema',
);
const words = fc.constantFrom(
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'error',
  'text',
  'text_delta',
  'input_json_delta',
  'tool_use',
  'user',
  'assistant',
  'tool',
  'system',
  'end_turn',
  'tool_calls',
  'tool_result',
  'image',
  'document',
  'base64',
  'data:image/png;base64,AA',
  '{"a":1}',
  '__proto__',
);
export const { hostile } = fc.letrec<{ hostile: unknown }>((tie) => ({
  hostile: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(words, fc.string(), fc.double(), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('hostile'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(names, fc.string()), tie('hostile'), { maxKeys: 6 }),
  ),
}));
/** The same as an event with a type. */
export const hostileEvent = fc
  .tuple(words, hostile)
  .map(([type, value]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? { ...value, type }
      : { type, delta: value, message: value, content_block: value, usage: value, index: 0 },
  );
