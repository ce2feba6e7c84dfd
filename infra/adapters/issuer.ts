// Who makes certificates? The one place that does: X.509 by a library, judged by Node's own OpenSSL.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { Issuer, Order, Pair, Validity } from '../../functions/core/ports/issuer.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const PEM = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

export const createIssuer = (): Issuer => ({ issue, inspect, split });

/** The library is read when it is needed: a run that only looks starts without it. */
async function issue({ authority, names, from, until }: Order): Promise<Pair> {
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const { subtle } = crypto;
  const [issuer, server] = await Promise.all([0, 1].map(() => subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])));
  if (issuer === undefined || server === undefined) throw new Error('no keys were made');
  const validity = { notBefore: new Date(from), notAfter: new Date(until) };
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    serialNumber: serial(),
    name: [{ CN: [authority] }],
    keys: issuer,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  const cert = await x509.X509CertificateGenerator.create({
    ...validity,
    serialNumber: serial(),
    // A common name ends at 64 letters, and nobody reads it: names stand in the extension.
    subject: [{ CN: [(names[0] ?? '').slice(0, 64)] }],
    issuer: ca.subject,
    publicKey: server.publicKey,
    signingKey: issuer.privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }) as const),
      ),
      await x509.SubjectKeyIdentifierExtension.create(server.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  const key = x509.PemConverter.encode(await subtle.exportKey('pkcs8', server.privateKey), 'PRIVATE KEY');
  return { ca: toPem(ca.toString('pem')), cert: toPem(cert.toString('pem')), key: `${key.trim()}\n` };
}

/** Twenty bytes at most, and positive (RFC 5280, 4.1.2.2). */
function serial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

function inspect(pair: Pair, names: ReadonlyArray<string>): Validity | undefined {
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
    // Whatever OpenSSL says of it: it is no pair.
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
