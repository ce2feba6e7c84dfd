// Why did the answer end? Anthropic's stop reasons in OpenAI's words.

const FINISH_REASONS: ReadonlyMap<string, string> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
]);

/** A reason that is new to us has ended the answer all the same. */
export function toFinishReason(stopReason: string): string {
  return FINISH_REASONS.get(stopReason) ?? 'stop';
}
