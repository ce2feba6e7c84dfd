// Embeddings of the sample upstream: equal inputs get equal vectors. Four letters are a token.
import { createHash } from 'node:crypto';
import * as z from 'zod';

const Input = z.union([z.string(), z.array(z.int()).min(1)]);

export const EmbeddingsRequest = z.looseObject({
  model: z.string().min(1),
  input: z.union([Input, z.array(Input).min(1).max(2048)]),
  encoding_format: z.enum(['float', 'base64']).nullish(),
});
export type EmbeddingsRequest = z.infer<typeof EmbeddingsRequest>;

const DIMENSIONS = 8;

export function embed({ model, input, encoding_format }: EmbeddingsRequest) {
  const inputs = isOne(input) ? [input] : input;
  const prompt_tokens = inputs.reduce((sum, one) => sum + tokensOf(one), 0);
  const data = inputs.map((one, index) => {
    const vector = toVector(one);
    const embedding = encoding_format === 'base64' ? toBase64(vector) : vector;
    return { object: 'embedding', index, embedding };
  });
  return { object: 'list', data, model, usage: { prompt_tokens, total_tokens: prompt_tokens } };
}

type Input = z.infer<typeof Input>;

function isOne(input: EmbeddingsRequest['input']): input is Input {
  return typeof input === 'string' || input.every((token) => typeof token === 'number');
}

function tokensOf(input: Input): number {
  return typeof input === 'string' ? Math.max(1, Math.ceil(input.length / 4)) : input.length;
}

/** Numbers that are exact in 32 bits, so that both encodings have the same values. */
function toVector(input: Input): number[] {
  const hash = createHash('sha256').update(JSON.stringify(input)).digest();
  return [...hash.subarray(0, DIMENSIONS)].map((byte) => (byte - 128) / 128);
}

function toBase64(vector: ReadonlyArray<number>): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString('base64');
}
