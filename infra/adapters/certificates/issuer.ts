// Certificates: a library makes them, Node's own OpenSSL judges them.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { Issuer, ServingCertificate, Validity } from '#core/ports/issuer.ts';

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

export const createIssuer = (): Issuer => ({
  // A run that only looks starts without the library.
  issueAuthority: async (order) => (await import('./x509.ts')).issueAuthority(order),
  issue: async (order) => (await import('./x509.ts')).issue(order),
  inspect,
  split,
});

function inspect(pair: ServingCertificate, names: ReadonlyArray<string>): Validity | undefined {
  try {
    const [ca, cert] = [new X509Certificate(pair.ca), new X509Certificate(pair.cert)];
    const isSigned = ca.ca && cert.checkIssued(ca) && cert.verify(ca.publicKey);
    const isOwn = cert.checkPrivateKey(createPrivateKey(pair.key));
    const isNamed = names.every(
      (name) => (isIP(name) === 0 ? cert.checkHost(name, { subject: 'never' }) : cert.checkIP(name)) !== undefined,
    );
    if (!isSigned || !isOwn || !isNamed) return undefined;
    return {
      from: Math.max(Date.parse(ca.validFrom), Date.parse(cert.validFrom)),
      until: Math.min(Date.parse(ca.validTo), Date.parse(cert.validTo)),
    };
  } catch {
    // Any error of OpenSSL means that this is no pair.
    return undefined;
  }
}

function split(bundle: string): ReadonlyArray<string> {
  const found = bundle.match(PEM)?.flatMap((text) => {
    try {
      return [toPem(new X509Certificate(text).toString())];
    } catch {
      return [];
    }
  });
  return [...new Set(found)];
}

const toPem = (text: string): string => `${text.trim()}\n`;
