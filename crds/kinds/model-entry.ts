// One entry of an instance's `spec.models`: a model behind a name.
// Nothing in here has a default in the CRD: a default inside a list item makes every unchanged `kubectl apply` a
// change.
import * as z from 'zod';
import { mapOf, text, withRule } from '../validation/rule.ts';
import { Duration, FreeText, integer, Limit, Money, matching, Name, SecretKeyName } from './shared-fields.ts';

const PROVIDER_AND_MODEL = /^[A-Za-z0-9][-._A-Za-z0-9]*\/[^\p{Z}\p{C}]+$/u;
const PROVIDER = /^[A-Za-z0-9][-._A-Za-z0-9]*$/u;
/**
 * Addresses without `user:password@`: everybody who may read the instance could read it, and a gateway would not send
 * it.
 */
const HTTP_ADDRESS = /^https?:\/\/[^\p{Z}\p{C}/?#@]+([/?#][^\p{Z}\p{C}]*)?$/u;

const price = (what: string) => Money.optional().describe(what);

const ModelCredentials = z.object({
  nameRef: Name.describe("Name of the Secret that has this model's credentials, in the namespace of the instance."),
  keys: mapOf(SecretKeyName, { max: 63, form: 'of 1 to 63 characters, e.g. `apiKey`' }, { min: 1, max: 32 }).describe(
    'Maps each credential name to the key of that Secret which holds it. Known names: `apiKey`, `apiBase`, `apiVersion`, `organization`, `awsAccessKeyId`, `awsSecretAccessKey`, `awsSessionToken`, `awsRegion`, `vertexCredentials`, `vertexProject`, `vertexLocation`.',
  ),
});

const ToolCosts = z.object({
  webSearch: price('Price in dollars of one web search, for providers whose usage counts them.'),
});

const GatewayParams = z.object({
  model: text(256)
    .regex(PROVIDER_AND_MODEL, 'must be of the form <provider>/<base-model>, e.g. "openai/gpt-4o"')
    .describe('The real model as `<provider>/<base-model>`; the provider ends at the first slash.'),
  customLLMProvider: matching(PROVIDER, 63, 'must consist of letters, digits, `-`, `_` and `.`, e.g. "openai"')
    .optional()
    .describe(
      'Decides dialect and address in place of the provider in `model`. An unknown one with an `apiBase` is treated as OpenAI-compatible.',
    ),
  apiBase: text(2048)
    .regex(
      HTTP_ADDRESS,
      'must be an address like "https://host/v1", without a user name or password; put those into the Secret of modelCredentials',
    )
    .optional()
    .describe(
      "Base address of the model endpoint: the part before `/chat/completions` (for Anthropic before `/v1/messages`, for Claude on Vertex AI before `/publishers/`, for Claude on Bedrock before `/model/`). A credential `apiBase` comes first; without either the provider's own address is used.",
    ),
  weight: integer(1, 1_000_000).optional().describe('Share among model entries with the same `modelName`. Default: 1.'),
  priority: integer(0, 1000).optional().describe('With `routing.strategy: Priority` lower comes first. Default: 0.'),
  rpm: Limit.optional().describe(
    'Maximum requests per clock minute, and twice that in any 60 seconds; others go to model entries with the same `modelName`.',
  ),
  tpm: Limit.optional().describe('Maximum tokens per minute, counted as with `rpm`.'),
  timeout: Duration.optional().describe('For one attempt at this model entry. Default: `routing.timeouts`.'),
  maxInputTokens: Limit.optional().describe(
    'Size of the context window, in tokens. Default: the listed size, if there is one.',
  ),
  maxOutputTokens: Limit.optional().describe('Maximum tokens of an answer. It bounds the cost of a request.'),
  inputCostPerMillionTokens: price(
    'Price in dollars of a million prompt tokens; `"0"` is free. A model entry without any price here costs what its provider lists; if that is unknown too, no key can use it.',
  ),
  outputCostPerMillionTokens: price(
    'Price in dollars of a million completion tokens, reasoning included. With an input price alone, the model entry is for embeddings only.',
  ),
  cachedInputCostPerMillionTokens: price('The same, of tokens read from a cache. Default: the input price.'),
  cacheWriteCostPerMillionTokens: price('The same, of tokens written to a cache. Default: the input price.'),
  cacheWriteLongCostPerMillionTokens: price(
    'The same, of tokens that are kept in a cache for an hour. Default: the price of other writes.',
  ),
  toolCosts: ToolCosts.optional().describe('Prices of tools that the provider runs; one without a price is refused.'),
});

export const ModelEntry = withRule(
  z.object({
    modelName: FreeText.describe('The name that clients use. Several model entries may share it.'),
    identifier: FreeText.describe('Name of the model entry, unique in the list.'),
    requiresAuth: z.boolean().describe('True when the model needs an API key or other credentials.'),
    modelCredentials: ModelCredentials.optional().describe(
      'Where the credentials are: with `requiresAuth: true` required, else left out. Each model that requires them has a Secret of its own.',
    ),
    gatewayParams: GatewayParams.describe('The model behind the name.'),
  }),
  {
    id: 'CredentialsRequired',
    cel: '!self.requiresAuth || has(self.modelCredentials)',
    isMet: ({ requiresAuth, modelCredentials }) => !requiresAuth || modelCredentials !== undefined,
    message: 'requiresAuth is true; add modelCredentials with the Secret and its keys, or set requiresAuth to false',
    at: 'modelCredentials',
  },
  {
    id: 'CredentialsUnused',
    cel: 'self.requiresAuth || !has(self.modelCredentials)',
    isMet: ({ requiresAuth, modelCredentials }) => requiresAuth || modelCredentials === undefined,
    message: 'must be absent while requiresAuth is false; remove modelCredentials, or set requiresAuth to true',
    at: 'modelCredentials',
  },
);
export type ModelEntry = z.output<typeof ModelEntry>;
