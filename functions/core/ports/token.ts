// Who sends a request, as far as a signed token can prove it?

/** What a token that holds says. Only what the issuer signed. */
export interface TokenClaims {
  /** `system:serviceaccount:…` or whatever else the token was issued to. */
  readonly subject: string | undefined;
  /** The private claims of Kubernetes, `kubernetes.io`; any JSON. */
  readonly kubernetes: unknown;
}

/** Why a token proves nothing. */
export type TokenProblem =
  | 'Malformed' //      no signed JSON token, or signed in a way that API servers do not
  | 'UnknownKey' //     none of the issuer's keys signed it
  | 'BadSignature' //   the key that it names did not sign this
  | 'WrongIssuer' //    signed by the right key in another issuer's name
  | 'WrongAudience' //  meant for somebody else
  | 'Expired' //        was good once
  | 'NotYetValid'; //   will be good later

export type TokenVerdict =
  | { readonly ok: true; readonly claims: TokenClaims }
  | { readonly ok: false; readonly problem: TokenProblem };

export interface TokenVerifier {
  /** Whether the issuer made this token for this audience, and it is valid now. Throws when the issuer's keys cannot be read. */
  verify(token: string, audience: string): Promise<TokenVerdict>;
}
