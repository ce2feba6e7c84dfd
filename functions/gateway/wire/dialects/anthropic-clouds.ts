// Messages through a cloud: Bedrock's InvokeModel and Vertex AI's rawPredict. Bodies are Anthropic's, except for the
// members below.
import type { Provider } from '#core/models/providers.ts';
import { type Address, type Call, type ProviderRoute, type Recipient, toCall, toRoute } from '../codec.ts';
import type { ModelRequest } from '../request.ts';

type Cloud = NonNullable<Provider['cloud']>;

/** The version of Anthropic's API at each cloud, a member of the body. */
const VERSIONS: Readonly<Record<Cloud, string>> = { bedrock: 'bedrock-2023-05-31', vertex: 'vertex-2023-10-16' };
/** Members of Anthropic's own API that are in the address at a cloud. */
const IN_ADDRESS: Readonly<Record<Cloud, ReadonlyArray<string>>> = { bedrock: ['model', 'stream'], vertex: ['model'] };

/** The address of a model. Streams have another address. */
export function routeToCloud(
  { base, entry }: Address,
  cloud: Cloud,
  headers: Readonly<Record<string, string>>,
): ProviderRoute {
  const model = encodeURIComponent(entry.model);
  if (cloud === 'vertex') {
    const url = `${base}/publishers/anthropic/models/${model}`;
    return { ...toRoute(`${url}:rawPredict`, headers), streamUrl: `${url}:streamRawPredict` };
  }
  const url = `${base}/model/${model}`;
  // Bedrock calls both replies JSON; a streamed reply is in frames.
  const accept = { ...headers, accept: 'application/json' };
  return { ...toRoute(`${url}/invoke`, accept), streamUrl: `${url}/invoke-with-response-stream` };
}

/** Members that a body for a cloud must and must not have. Undefined: the provider is Anthropic itself. */
export function membersFor(
  { endpoint: { provider, credentials } }: Recipient,
  request: Pick<ModelRequest, 'forwardedHead'>,
) {
  const { cloud } = provider;
  if (cloud === undefined) return undefined;
  const betas = request.forwardedHead?.headers[BETA]?.split(',').map((beta) => beta.trim());
  const features = cloud === 'bedrock' && betas !== undefined ? { anthropic_beta: betas } : {};
  const set = { anthropic_version: credentials.apiVersion ?? VERSIONS[cloud], ...features };
  return { set, drop: new Set(IN_ADDRESS[cloud]) };
}

const BETA = 'anthropic-beta';

/**
 * The call with this body. Clouds read the version in the body, and Bedrock also the features; they have no queries.
 */
export function toAnthropicCall(request: ModelRequest, recipient: Recipient, body: Call['body']): Call {
  const { cloud } = recipient.endpoint.provider;
  if (cloud === undefined || request.forwardedHead === undefined) return toCall(request, recipient, body);
  const beta = request.forwardedHead.headers[BETA];
  const headers = cloud === 'vertex' && beta !== undefined ? { [BETA]: beta } : {};
  return toCall({ ...request, forwardedHead: { query: '', headers } }, recipient, body);
}
