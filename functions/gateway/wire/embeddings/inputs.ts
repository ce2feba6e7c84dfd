// Inputs of an embeddings request: one or several, as texts or tokens. Their size, without a tokenizer.
import { NO_MEDIA } from '../prompt/media.ts';
import { bytesIn, estimateTokens, type PromptSize } from '../prompt/prompt.ts';

/** The maximum tokens that a model adds at the beginning and the end of each input. */
const MAX_ADDED = 4;

/** The size of the inputs. Undefined: the member is neither a text, nor tokens, nor an array of these. */
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

/** Whether the value is one input. An empty array has neither texts nor tokens. */
function isInput(input: unknown): input is Input {
  if (typeof input === 'string') return true;
  return Array.isArray(input) && input.length > 0 && input.every((token) => typeof token === 'number');
}
