// Providers, one row each: the address, the authentication, and the differences from others. A further dialect is code,
// not a row.

export type DialectName = 'openai' | 'anthropic';

/** APIs of the gateway. */
export type ApiName = 'chat' | 'messages' | 'responses' | 'embeddings';

export interface Provider {
  readonly dialect: DialectName;
  /** The APIs that its model entries serve, some of them by translation. */
  readonly apis: ReadonlyArray<ApiName>;
  /**
   * The address before the paths of the APIs; `{name}` is the value of that credential. Absent: the model entry's
   * `apiBase` is needed.
   */
  readonly base?: string;
  /** The header that carries the key; `authorization` carries it as a bearer token. */
  readonly auth: 'authorization' | 'api-key' | 'x-api-key';
  /** The signature that takes the place of an absent `apiKey`: of AWS for one of its services, or a token of Google. */
  readonly signing?: 'bedrock' | 'bedrock-mantle' | 'google';
  /**
   * The cloud that serves Messages in its own form: the model is part of the address, the version part of the body.
   * Absent: Anthropic's own API.
   */
  readonly cloud?: 'bedrock' | 'vertex';
  /**
   * The name of the limit of an answer: `max_tokens` if the provider refuses the newer name, or ignores it silently.
   */
  readonly outputLimit: 'max_completion_tokens' | 'max_tokens';
  /** The provider's list in the price table; absent: there is none. */
  readonly prices?: string;
  /** The provider may store chat completions, unless a request has `store: false`. Others may refuse that member. */
  readonly storesChats?: true;
  /** False: the provider refuses `stream_options`, and reports usage in streams without it. */
  readonly streamOptions: boolean;
  /** Usage has the cost in dollars, which is charged if it is more than the cost by our prices. */
  readonly reportsCost?: true;
  /** A count in the middle of a stream is of all `n` answers. Other servers may count only the answer of that event. */
  readonly countsAllAnswers?: true;
  /**
   * `external_web_access: false` of a tool `web_search` keeps its searches from the network, or the server bills no
   * searches. Others ignore the member.
   */
  readonly searchesOffline?: true;
  /** The provider refuses requests with `user`, so that translations leave it out. */
  readonly refusesUser?: true;
}

const OPENAI: Provider = {
  dialect: 'openai',
  apis: ['chat', 'messages', 'embeddings'],
  auth: 'authorization',
  outputLimit: 'max_completion_tokens',
  streamOptions: true,
};

const at = (base: string, differences: Partial<Provider> = {}): Provider => ({ ...OPENAI, base, ...differences });
/** APIs of providers without embeddings in this dialect. */
const CHAT_ONLY: Pick<Provider, 'apis'> = { apis: ['chat', 'messages'] };
const WITH_RESPONSES: Pick<Provider, 'apis'> = { apis: ['chat', 'messages', 'responses', 'embeddings'] };
/** OpenAI's own servers. */
const BY_OPENAI = { ...WITH_RESPONSES, storesChats: true, searchesOffline: true } as const;
const MAX_TOKENS = { outputLimit: 'max_tokens' } as const;

const ANTHROPIC: Provider = { ...OPENAI, dialect: 'anthropic', ...CHAT_ONLY, auth: 'x-api-key' };

const BEDROCK = 'https://bedrock-runtime.{awsRegion}.amazonaws.com';
const MANTLE = 'https://bedrock-mantle.{awsRegion}.api.aws';
const VERTEX =
  'https://{vertexLocation}-aiplatform.googleapis.com/v1/projects/{vertexProject}/locations/{vertexLocation}';
const BY_AWS = { prices: 'aws', signing: 'bedrock' } as const;
const BY_MANTLE = { prices: 'aws', signing: 'bedrock-mantle' } as const;
const BY_GOOGLE = { prices: 'google', signing: 'google' } as const;

/** Base addresses as the providers' own API references give them. */
const PROVIDERS: ReadonlyMap<string, Provider> = new Map<string, Provider>([
  ['openai', at('https://api.openai.com/v1', { ...BY_OPENAI, prices: 'openai' })],
  // The v1 API: `https://{resource}.openai.azure.com/openai/v1`; the model is the deployment's name.
  ['azure', { ...OPENAI, ...BY_OPENAI, auth: 'api-key', prices: 'azure' }],
  ['groq', at('https://api.groq.com/openai/v1', { apis: ['chat', 'messages', 'responses'], prices: 'groq' })],
  [
    'mistral',
    at('https://api.mistral.ai/v1', { ...MAX_TOKENS, prices: 'mistral', streamOptions: false, refusesUser: true }),
  ],
  ['deepseek', at('https://api.deepseek.com/v1', { ...CHAT_ONLY, ...MAX_TOKENS, prices: 'deepseek' })],
  ['together', at('https://api.together.xyz/v1', { ...MAX_TOKENS, prices: 'together' })],
  ['together_ai', at('https://api.together.xyz/v1', { ...MAX_TOKENS, prices: 'together' })],
  ['fireworks', at('https://api.fireworks.ai/inference/v1', { ...WITH_RESPONSES, ...MAX_TOKENS, prices: 'fireworks' })],
  [
    'fireworks_ai',
    at('https://api.fireworks.ai/inference/v1', { ...WITH_RESPONSES, ...MAX_TOKENS, prices: 'fireworks' }),
  ],
  [
    'openrouter',
    at('https://openrouter.ai/api/v1', { ...WITH_RESPONSES, ...MAX_TOKENS, prices: 'openrouter', reportsCost: true }),
  ],
  ['xai', at('https://api.x.ai/v1', { apis: ['chat', 'messages', 'responses'], prices: 'x-ai', reportsCost: true })],
  [
    'perplexity',
    at('https://api.perplexity.ai', { ...CHAT_ONLY, ...MAX_TOKENS, prices: 'perplexity', reportsCost: true }),
  ],
  ['cerebras', at('https://api.cerebras.ai/v1', { ...CHAT_ONLY, prices: 'cerebras' })],
  ['deepinfra', at('https://api.deepinfra.com/v1/openai', MAX_TOKENS)],
  ['nvidia_nim', at('https://integrate.api.nvidia.com/v1', MAX_TOKENS)],
  [
    'gemini',
    at('https://generativelanguage.googleapis.com/v1beta/openai', { prices: 'google', countsAllAnswers: true }),
  ],
  ['cohere', at('https://api.cohere.ai/compatibility/v1', { ...MAX_TOKENS, prices: 'cohere' })],
  ['voyage', at('https://api.voyageai.com/v1', { apis: ['embeddings'], prices: 'voyageai' })],
  ['ollama', at('http://127.0.0.1:11434/v1', { ...WITH_RESPONSES, ...MAX_TOKENS, searchesOffline: true })],
  ['vllm', { ...OPENAI, ...WITH_RESPONSES, searchesOffline: true }],
  // Bedrock's OpenAI-compatible endpoint; Claude by InvokeModel.
  ['bedrock', at(`${BEDROCK}/openai/v1`, { ...CHAT_ONLY, ...BY_AWS })],
  ['bedrock_anthropic', { ...ANTHROPIC, ...BY_AWS, base: BEDROCK, auth: 'authorization', cloud: 'bedrock' }],
  // Bedrock's newer endpoint, with the paths of OpenAI and of Anthropic.
  ['bedrock_mantle', at(`${MANTLE}/v1`, { apis: ['chat', 'messages', 'responses'], ...BY_MANTLE })],
  ['bedrock_mantle_anthropic', { ...ANTHROPIC, ...BY_MANTLE, base: `${MANTLE}/anthropic` }],
  // Vertex AI's OpenAI-compatible endpoint; Claude by rawPredict.
  ['vertex_ai', at(`${VERTEX}/endpoints/openapi`, { ...CHAT_ONLY, ...BY_GOOGLE, countsAllAnswers: true })],
  ['vertex_ai_anthropic', { ...ANTHROPIC, ...BY_GOOGLE, base: VERTEX, auth: 'authorization', cloud: 'vertex' }],
  ['anthropic', { ...ANTHROPIC, base: 'https://api.anthropic.com', prices: 'anthropic' }],
]);

/** All names with a row. */
export const PROVIDER_NAMES: ReadonlyArray<string> = [...PROVIDERS.keys()];

export const isKnownProvider = (name: string): boolean => PROVIDERS.has(name.toLowerCase());

/** The price lists that rows name, each once. */
export const PRICE_LISTS: ReadonlyArray<string> = [
  ...new Set([...PROVIDERS.values()].flatMap(({ prices }) => prices ?? [])),
];

/**
 * An unknown provider. Many servers of this dialect know only the older name of the limit, and ignore the newer one.
 */
const UNKNOWN: Provider = { ...OPENAI, ...WITH_RESPONSES, ...MAX_TOKENS };

/** Models that clouds serve at Anthropic's API. */
const CLAUDE = /claude/i;

/**
 * The row of a provider; clouds have another row for Claude. An unknown provider has the OpenAI dialect, and needs an
 * `apiBase` of the model entry.
 */
export function providerOf(name: string, model = ''): Provider {
  const row = name.toLowerCase();
  return (CLAUDE.test(model) ? PROVIDERS.get(`${row}_anthropic`) : undefined) ?? PROVIDERS.get(row) ?? UNKNOWN;
}

/** The names of all credentials (DESIGN 7). */
export const CREDENTIAL_NAMES: ReadonlyArray<string> = [
  'apiKey',
  'apiBase',
  'apiVersion',
  'organization',
  'awsAccessKeyId',
  'awsSecretAccessKey',
  'awsSessionToken',
  'awsRegion',
  'vertexCredentials',
  'vertexProject',
  'vertexLocation',
];

/**
 * Credentials that are part of an address (of a model, or of the token service of a Pod's role), and their form: no
 * value of this form can lead to another host.
 */
const ADDRESS_PARTS: ReadonlyMap<string, RegExp> = new Map([
  ['awsRegion', /^[A-Za-z0-9][-A-Za-z0-9]*$/],
  ['vertexLocation', /^[A-Za-z0-9][-A-Za-z0-9]*$/],
  // `example.com:project` belongs to a domain.
  ['vertexProject', /^[A-Za-z0-9][-A-Za-z0-9.:]*$/],
]);

/** The first credential that would be part of an address and has another form. */
export function malformedPart(credentials: Readonly<Record<string, string>>): string | undefined {
  const parts = [...ADDRESS_PARTS].filter(([name]) => credentials[name] !== undefined);
  return parts.find(([name, form]) => !form.test(credentials[name] ?? ''))?.[0];
}

/** Credentials that the provider's own address is made of. */
export function partsOf({ base = '' }: Provider): ReadonlyArray<string> {
  return [...new Set([...base.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name))];
}

/** The provider's own address; undefined: it has none, or one of its credentials is absent. */
export function ownAddress(provider: Provider, credentials: Readonly<Record<string, string>>): string | undefined {
  const { base } = provider;
  if (base === undefined || !base.includes('{')) return base;
  const isWhole = partsOf(provider).every((name) => ADDRESS_PARTS.get(name)?.test(credentials[name] ?? '') === true);
  return isWhole ? base.replaceAll(/\{(\w+)\}/g, (_, name: string) => credentials[name] ?? '') : undefined;
}
