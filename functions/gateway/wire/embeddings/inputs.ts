// Inputs of an embeddings request: one or many, as texts or as tokens; their size, without a tokenizer.
import { NO_MEDIA } from '../prompt/media.ts';
import { bytesIn, estimateTokens, type PromptSize } from '../prompt/prompt.ts';

/** Tokens that models add to each input, at its beginning and its end. */
const MAX_ADDED = 4;

/** Undefined where the member is none of a text, tokens, or an array of either. */
export function measureInputs(input: unknown): PromptSize | undefined {
  const inputs = inputsIn(input);
  if (inputs === undefined) return undefined;
  let max = 0;
  let estimate = 0;
  for (const one of inputs) {
    const bytes = typeof one === 'string' ? bytesIn(one) : undefined;
    max += MAX_ADDED + (bytes ?? one.length);
    estimate += bytes === undefined ? one.length : estimateTokens(bytes);
  }
  return { maxTokens: BigInt(max), prompts: inputs.length, media: NO_MEDIA, estimatedTokens: Math.max(1, estimate) };
}

type Input = string | ReadonlyArray<number>;

function inputsIn(input: unknown): ReadonlyArray<Input> | undefined {
  if (isInput(input)) return [input];
  return Array.isArray(input) && input.every(isInput) ? input : undefined;
}

/** An empty array has neither texts nor tokens. */
function isInput(input: unknown): input is Input {
  if (typeof input === 'string') return true;
  return Array.isArray(input) && input.length > 0 && input.every((token) => typeof token === 'number');
}
