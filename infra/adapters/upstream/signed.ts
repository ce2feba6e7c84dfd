// Signed requests to providers: SigV4 of AWS, and access tokens of Google for a service account (RFC 7523).
import {
  type Signing,
  type Upstream,
  UpstreamBroke,
  type UpstreamRequest,
  type UpstreamResponse,
} from '#core/ports/serving.ts';
import { reasonOf } from '#core/reason.ts';
import { toBytes } from './body.ts';

/** Milliseconds: a token is renewed so long before its end. */
const MARGIN = 60_000;

interface Deps {
  readonly fetch: typeof globalThis.fetch;
  readonly now: () => number;
}

interface Token {
  readonly text: string;
  readonly until: number;
}

type SigningOf<By extends Signing['by']> = Extract<Signing, { by: By }>;

/** The upstream with signed requests. One that cannot be signed is not sent: it breaks as `unsigned`. */
export function withSigning(upstream: Upstream, { fetch, now }: Deps): Upstream {
  /** Values only: on Workers a request may not wait for another's call. */
  const tokens = new Map<string, Token>();

  return (request) => (request.signing === undefined ? upstream(request) : sign(request, request.signing));

  async function sign(request: UpstreamRequest, signing: Signing): Promise<UpstreamResponse> {
    if (signing.by === 'aws') return upstream(await orBroken(toSigned(request, signing, now())));
    const id = `${signing.clientEmail} ${signing.privateKeyId} ${signing.tokenUri}`;
    const known = tokens.get(id);
    const token = known !== undefined && now() < known.until ? known : await orBroken(askToken(request, signing));
    tokens.set(id, token);
    const headers = { ...request.headers, authorization: `Bearer ${token.text}` };
    const response = await upstream({ ...request, headers });
    // A token that was revoked is not kept until its end.
    if (response.status === 401) tokens.delete(id);
    return response;
  }

  async function askToken({ signal, timeouts }: UpstreamRequest, signing: SigningOf<'google'>): Promise<Token> {
    const at = now();
    const { toAssertion } = await import('./google-assertion.ts');
    const response = await fetch(signing.tokenUri, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: await toAssertion(signing, Math.floor(at / 1000)),
      }),
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeouts.connect)]),
    });
    if (!response.ok) throw new Error(`Google gave no access token: ${response.status}`);
    const { access_token: text, expires_in: seconds } = (await response.json()) as Record<string, unknown>;
    if (typeof text !== 'string' || typeof seconds !== 'number') throw new Error('Google gave no access token');
    return { text, until: at + seconds * 1000 - MARGIN };
  }
}

/** Nothing was sent to the provider yet. */
const orBroken = <T>(signed: Promise<T>): Promise<T> =>
  signed.catch((cause) => {
    throw new UpstreamBroke('unsigned', `the request could not be signed: ${reasonOf(cause)}`, { cause });
  });

async function toSigned(
  request: UpstreamRequest,
  { by: _, ...keys }: SigningOf<'aws'>,
  now: number,
): Promise<UpstreamRequest> {
  const { AwsV4Signer } = await import('aws4fetch');
  const body = toBytes(request.body);
  const datetime = new Date(now).toISOString().replaceAll(/[:-]|\.\d{3}/g, '');
  const { url, headers } = request;
  const signed = await new AwsV4Signer({ method: 'POST', url, headers, body, datetime, ...keys }).sign();
  return { ...request, headers: Object.fromEntries(signed.headers), body: [body] };
}
