// Where does a provider listen, and how does it want to be told who asks? One row each; a dialect of its own is code.

export type DialectName = 'openai' | 'anthropic';

export interface Provider {
  readonly dialect: DialectName;
  /** What stands before `/chat/completions`. Absent: only the entry's `apiBase` knows. */
  readonly base?: string;
  /** The header that carries the key; `authorization` as a bearer token unless said otherwise. */
  readonly auth: 'authorization' | 'api-key';
  /** What a limit of ours is called where the client named none. */
  readonly outputLimit: 'max_completion_tokens' | 'max_tokens';
  /** False: refuses `stream_options`, and reports usage in streams without being asked. */
  readonly streamOptions: boolean;
}

const OPENAI: Provider = {
  dialect: 'openai',
  auth: 'authorization',
  outputLimit: 'max_completion_tokens',
  streamOptions: true,
};

const at = (base: string, differences: Partial<Provider> = {}): Provider => ({ ...OPENAI, base, ...differences });
const MAX_TOKENS = { outputLimit: 'max_tokens' } as const;

/** Base addresses as the providers' own API references give them. */
const PROVIDERS: ReadonlyMap<string, Provider> = new Map<string, Provider>([
  ['openai', at('https://api.openai.com/v1')],
  // The v1 API: `https://{resource}.openai.azure.com/openai/v1`; the model is the deployment's name.
  ['azure', { ...OPENAI, auth: 'api-key' }],
  ['groq', at('https://api.groq.com/openai/v1')],
  ['mistral', at('https://api.mistral.ai/v1', { ...MAX_TOKENS, streamOptions: false })],
  ['deepseek', at('https://api.deepseek.com/v1', MAX_TOKENS)],
  ['together', at('https://api.together.xyz/v1', MAX_TOKENS)],
  ['together_ai', at('https://api.together.xyz/v1', MAX_TOKENS)],
  ['fireworks', at('https://api.fireworks.ai/inference/v1', MAX_TOKENS)],
  ['fireworks_ai', at('https://api.fireworks.ai/inference/v1', MAX_TOKENS)],
  ['openrouter', at('https://openrouter.ai/api/v1', MAX_TOKENS)],
  ['xai', at('https://api.x.ai/v1')],
  ['perplexity', at('https://api.perplexity.ai', MAX_TOKENS)],
  ['cerebras', at('https://api.cerebras.ai/v1')],
  ['deepinfra', at('https://api.deepinfra.com/v1/openai', MAX_TOKENS)],
  ['gemini', at('https://generativelanguage.googleapis.com/v1beta/openai')],
  ['ollama', at('http://127.0.0.1:11434/v1', MAX_TOKENS)],
  ['vllm', OPENAI],
  ['anthropic', { ...OPENAI, dialect: 'anthropic', base: 'https://api.anthropic.com' }],
]);

export const KNOWN_PROVIDERS: ReadonlyArray<string> = [...PROVIDERS.keys()];

/** The row of a provider. One that we do not know speaks the OpenAI dialect at the entry's own `apiBase`, or nowhere. */
export function providerOf(name: string): Provider {
  return PROVIDERS.get(name.toLowerCase()) ?? OPENAI;
}

/** Whether the provider has a row of its own; admission warns of an override that has none. */
export function knowsProvider(name: string): boolean {
  return PROVIDERS.has(name.toLowerCase());
}
