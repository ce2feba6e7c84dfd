// Did the cluster issue this service-account token, for us, and is it still good? Judged offline, with the cluster's public keys.
import { JOSEError } from 'jose/errors';
import { jwtVerify } from 'jose/jwt/verify';
import type { Clock } from '../../../functions/core/ports/clock.ts';
import type { TokenProblem, TokenVerifier } from '../../../functions/core/ports/token.ts';
import { reasonOf } from '../reason.ts';
import type { IssuerKeys } from './issuer.ts';

export interface TokenVerifierDeps {
  readonly keys: IssuerKeys;
  readonly clock: Clock;
}

/** What API servers sign service-account tokens with. Nothing symmetric, and never `none`. */
const ALGORITHMS = ['RS256', 'ES256', 'ES384', 'ES512'];
/** Seconds by which our clock and the API server's may differ. */
const CLOCK_TOLERANCE = 30;
/** Longer than any token of an API server; what is longer is not looked at. */
const LONGEST = 16_384;

export function createTokenVerifier({ keys, clock }: TokenVerifierDeps): TokenVerifier {
  return {
    verify: async (token, audience) => {
      if (token.length > LONGEST) return { ok: false, problem: 'Malformed' };
      const issuer = await keys.issuer();
      try {
        const { payload } = await jwtVerify(token, keys.find, {
          issuer,
          audience,
          algorithms: ALGORITHMS,
          requiredClaims: ['exp'],
          clockTolerance: CLOCK_TOLERANCE,
          currentDate: new Date(clock.now()),
        });
        return { ok: true, claims: { subject: payload.sub, kubernetes: payload['kubernetes.io'] } };
      } catch (error) {
        const problem = problemOf(error);
        if (problem === undefined)
          throw new Error(`reading the keys of issuer ${issuer}: ${reasonOf(error)}`, { cause: error });
        return { ok: false, problem };
      }
    },
  };
}

const PROBLEMS: Readonly<Record<string, TokenProblem>> = {
  ERR_JWT_EXPIRED: 'Expired',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'BadSignature',
  ERR_JWKS_NO_MATCHING_KEY: 'UnknownKey',
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'UnknownKey',
  ERR_JWS_INVALID: 'Malformed',
  ERR_JWT_INVALID: 'Malformed',
  ERR_JOSE_ALG_NOT_ALLOWED: 'Malformed',
  ERR_JOSE_NOT_SUPPORTED: 'Malformed',
};
const CLAIMS: Readonly<Record<string, TokenProblem>> = { iss: 'WrongIssuer', aud: 'WrongAudience', nbf: 'NotYetValid' };

/** Undefined: nothing that the token is to blame for. */
function problemOf(error: unknown): TokenProblem | undefined {
  if (!(error instanceof JOSEError)) return undefined;
  if (error.code !== 'ERR_JWT_CLAIM_VALIDATION_FAILED') return PROBLEMS[error.code];
  const claim = 'claim' in error ? String(error.claim) : '';
  return CLAIMS[claim] ?? 'Malformed';
}
