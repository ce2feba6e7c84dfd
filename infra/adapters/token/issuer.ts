// With which name and which keys does the cluster sign service-account tokens? Its API server says, and is asked rarely.
import { createRemoteJWKSet, customFetch } from 'jose/jwks/remote';
import type { Clock } from '../../../functions/core/ports/clock.ts';
import type { KubeTransport } from '../kubernetes/transport.ts';

export interface IssuerKeysDeps {
  /** With our own credentials: every service account may read both documents, others may not. */
  readonly request: KubeTransport;
  readonly clock: Clock;
  /** The issuer's name where it is known; absent: what the API server's OIDC discovery says. */
  readonly issuer?: string;
}

export interface IssuerKeys {
  /** Throws when the API server does not say. */
  issuer(): Promise<string>;
  /** The key with which a token of this header was signed, as `jose` asks for it. */
  readonly find: ReturnType<typeof createRemoteJWKSet>;
}

/** An API server refuses (406) to give either as anything else. */
const DISCOVERY = { path: '/.well-known/openid-configuration', accept: 'application/json' };
/** The API server's own copy. The `jwks_uri` of its discovery is for others, and may lead where we cannot go. */
const KEYS = { path: '/openid/v1/jwks', accept: 'application/jwk-set+json' };

/** Keys rotate in days; a token signed with a new one is what makes us look at once. */
const FRESH_FOR = 600_000;
/** Unknown keys make us look at most this often, however many come. */
const LOOK_AGAIN_AFTER = 30_000;
/** Both documents within what an API server waits for a webhook of ours (5 s), with time left to judge. */
const GIVE_UP_AFTER = 1_500;

/** Keeps values between requests and no I/O, so one may serve all requests of a Worker. Correct when empty. */
export function createIssuerKeys({ request, clock, issuer }: IssuerKeysDeps): IssuerKeys {
  let said: { readonly issuer: string; readonly at: number } | undefined;

  const get = async (what: typeof DISCOVERY, signal: AbortSignal): Promise<Response> => {
    const response = await request({ method: 'GET', ...what, signal });
    return new Response(await response.text(), { status: response.status });
  };

  return {
    issuer: async () => {
      if (issuer !== undefined) return issuer;
      if (said !== undefined && clock.now() - said.at < FRESH_FOR) return said.issuer;
      const answer = await get(DISCOVERY, AbortSignal.timeout(GIVE_UP_AFTER));
      const read = answer.ok ? issuerIn(await answer.json()) : undefined;
      if (read === undefined) throw new Error(`GET ${DISCOVERY.path}: ${answer.status} names no issuer`);
      said = { issuer: read, at: clock.now() };
      return read;
    },
    // Only the path counts: `request` knows the way.
    find: createRemoteJWKSet(new URL(`https://kubernetes${KEYS.path}`), {
      [customFetch]: (_, { signal }) => get(KEYS, signal),
      cacheMaxAge: FRESH_FOR,
      cooldownDuration: LOOK_AGAIN_AFTER,
      timeoutDuration: GIVE_UP_AFTER,
    }),
  };
}

function issuerIn(document: unknown): string | undefined {
  const found = typeof document === 'object' && document !== null && 'issuer' in document ? document.issuer : undefined;
  return typeof found === 'string' && found !== '' ? found : undefined;
}
