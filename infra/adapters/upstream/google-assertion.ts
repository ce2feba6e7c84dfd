// Assertions of a service account of Google, signed with its private key (RFC 7523). This module, with its library, is
// loaded at its first use.
import { importPKCS8, SignJWT } from 'jose';
import type { Signing } from '#core/ports/upstream.ts';

/** The maximum seconds for which Google accepts an assertion. */
const VALIDITY = 3600;
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** `now`: seconds since the Unix epoch. */
export async function toAssertion(
  { clientEmail, privateKey, privateKeyId, tokenUri }: Extract<Signing, { signer: 'google' }>,
  now: number,
): Promise<string> {
  const key = await importPKCS8(privateKey, 'RS256');
  return new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(privateKeyId === undefined ? {} : { kid: privateKeyId }) })
    .setIssuer(clientEmail)
    .setAudience(tokenUri)
    .setIssuedAt(now)
    .setExpirationTime(now + VALIDITY)
    .sign(key);
}
