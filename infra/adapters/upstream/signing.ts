// Signing of requests to providers: SigV4 of AWS, and access tokens of Google for a service account (RFC 7523).
import { createHash } from 'node:crypto';
import { createLru, type Lru } from '#core/caches/lru.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import {
  type Signing,
  type Upstream,
  UpstreamError,
  type UpstreamRequest,
  type UpstreamResponse,
} from '#core/ports/upstream.ts';
import { toAbortSignal } from './abort-signal.ts';
import { toBytes } from './body.ts';
import { readTokenReply } from './token-reply.ts';

/** A token is renewed this time (in milliseconds) before it expires. */
const MARGIN = 60_000;
/** The maximum number of cached tokens, and of cached keys: those of edited credentials stay for a while. */
const MAX_TOKENS = 1_024;

interface Dependencies {
  readonly fetch: typeof globalThis.fetch;
  readonly now: () => number;
  readonly pod?: PodIdentity | undefined;
}

/** A credential, and the end of its use in milliseconds since the Unix epoch. */
interface ExpiringValue<T> {
  readonly value: T;
  readonly until: number;
}

/** Credentials of the Pod. Both calls reject with the reason if there are none. */
export interface PodIdentity {
  awsKeys(region: string, signal: AbortSignal): Promise<ExpiringValue<Keys>>;
  googleToken(signal: AbortSignal): Promise<ExpiringValue<string>>;
}

type Keys = Pick<SigningOf<'aws'>, 'accessKeyId' | 'secretAccessKey' | 'sessionToken'>;

const rejectNoPod = () =>
  Promise.reject(new Error('this process has no role of a Pod. Set an apiKey, or keys, for the model entry'));
/** The identity outside of a Pod: of a Worker, or a process on a person's machine. */
const NO_POD: PodIdentity = { awsKeys: rejectNoPod, googleToken: rejectNoPod };

type SigningOf<Signer extends Signing['signer']> = Extract<Signing, { signer: Signer }>;

/** Adds signatures and tokens to requests. A request that cannot be signed is not sent: it fails as `not signed`. */
export function withSigning(upstream: Upstream, { fetch, now, pod = NO_POD }: Dependencies): Upstream {
  /** Tokens, not promises of tokens: on Workers, a request cannot wait for the call of another request. */
  const tokens = createLru<ExpiringValue<string>>(MAX_TOKENS);
  const keys = createLru<ExpiringValue<Keys>>(MAX_TOKENS);

  return (request) => (request.signing === undefined ? upstream(request) : sign(request, request.signing));

  async function sign(request: UpstreamRequest, signing: Signing): Promise<UpstreamResponse> {
    if (signing.signer === 'aws') return upstream(await orUnsigned(toSigned(request, signing, now())));
    if (signing.signer === 'google') {
      const { clientEmail, privateKey, privateKeyId, tokenUri } = signing;
      // The key contains a hash of the private key: only a file with that key gets its token. The other members are no
      // secrets.
      const proof = createHash('sha256').update(privateKey).digest('hex');
      const id = `${clientEmail} ${privateKeyId} ${tokenUri} ${proof}`;
      return withToken(request, id, () => askToken(request, signing));
    }
    const signal = connectSignal(request);
    if (signing.issuer === 'google') return withToken(request, 'pod', () => pod.googleToken(signal));
    const { service, region } = signing;
    const own = await cachedValue(keys, region, () => pod.awsKeys(region, signal));
    return upstream(await orUnsigned(toSigned(request, { signer: 'aws', service, region, ...own }, now())));
  }

  async function withToken(
    request: UpstreamRequest,
    id: string,
    fetchValue: () => Promise<ExpiringValue<string>>,
  ): Promise<UpstreamResponse> {
    const headers = { ...request.headers, authorization: `Bearer ${await cachedValue(tokens, id, fetchValue)}` };
    const response = await upstream({ ...request, headers });
    // A revoked token is dropped before its end.
    if (response.status === 401) tokens.delete(id);
    return response;
  }

  async function cachedValue<T>(
    known: Lru<ExpiringValue<T>>,
    id: string,
    fetchValue: () => Promise<ExpiringValue<T>>,
  ): Promise<T> {
    const cached = known.get(id);
    if (cached !== undefined && now() < cached.until - MARGIN) return cached.value;
    const fetched = await orUnsigned(fetchValue());
    known.set(id, fetched);
    return fetched.value;
  }

  async function askToken(request: UpstreamRequest, signing: SigningOf<'google'>): Promise<ExpiringValue<string>> {
    const at = now();
    const { toAssertion } = await import('./google-assertion.ts');
    const response = await fetch(signing.tokenUri, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: await toAssertion(signing, Math.floor(at / 1000)),
      }),
      redirect: 'manual',
      signal: connectSignal(request),
    });
    if (!response.ok) throw new Error(`Google refused an access token: status ${response.status}`);
    const { access_token: text, expires_in: seconds } = JSON.parse(await readTokenReply(response)) as Record<
      string,
      unknown
    >;
    if (typeof text !== 'string' || typeof seconds !== 'number')
      throw new Error('the reply of Google has no access token');
    return { value: text, until: at + seconds * 1000 };
  }
}

function connectSignal({ signal, timeouts }: UpstreamRequest): AbortSignal {
  return AbortSignal.any([toAbortSignal(signal), AbortSignal.timeout(timeouts.connect)]);
}

/** Turns a rejection into `not signed`: nothing was sent to the provider. */
const orUnsigned = <T>(signed: Promise<T>): Promise<T> =>
  signed.catch((cause) => {
    throw new UpstreamError('not signed', `cannot sign the request: ${reasonOf(cause)}`, { cause });
  });

async function toSigned(
  request: UpstreamRequest,
  { signer: _, ...keys }: SigningOf<'aws'>,
  now: number,
): Promise<UpstreamRequest> {
  const { AwsV4Signer } = await import('aws4fetch');
  const body = toBytes(request.body);
  const datetime = new Date(now).toISOString().replaceAll(/[:-]|\.\d{3}/g, '');
  const { query = '', headers } = request;
  const url = request.url + query;
  const signed = await new AwsV4Signer({ method: 'POST', url, headers, body, datetime, ...keys }).sign();
  return { ...request, headers: Object.fromEntries(signed.headers), body: [body] };
}
