// X.509 certificates, made by a library that is loaded when one is due (issuer.ts).
import 'reflect-metadata';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import type { AuthorityOrder, CertificateAndKey, CertificateOrder, ServingCertificate } from '#core/ports/issuer.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

export async function issueAuthority({ name, from, until }: AuthorityOrder): Promise<CertificateAndKey> {
  const keys = await newKeys();
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    ...common(from, until),
    name: [{ CN: [name] }],
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return toSigned(cert, keys);
}

export async function issue({ authority, names, from, until }: CertificateOrder): Promise<ServingCertificate> {
  const ca = new x509.X509Certificate(authority.cert);
  const [der = new ArrayBuffer(0)] = x509.PemConverter.decode(authority.key);
  const signingKey = await crypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
  const keys = await newKeys();
  const cert = await x509.X509CertificateGenerator.create({
    ...common(from, until),
    // A common name ends at 64 letters, and no client reads it: names is in the extension.
    subject: [{ CN: [(names[0] ?? '').slice(0, 64)] }],
    issuer: ca.subject,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }) as const),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey),
    ],
  });
  return { ca: toPem(authority.cert), ...(await toSigned(cert, keys)) };
}

const newKeys = () => crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

const common = (from: number, until: number) => ({
  notBefore: new Date(from),
  notAfter: new Date(until),
  serialNumber: serial(),
  signingAlgorithm: ALGORITHM,
});

/** Twenty bytes at most, and positive (RFC 5280, 4.1.2.2). */
function serial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

async function toSigned(
  cert: x509.X509Certificate,
  { privateKey }: Awaited<ReturnType<typeof newKeys>>,
): Promise<CertificateAndKey> {
  const key = x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');
  return { cert: toPem(cert.toString('pem')), key: toPem(key) };
}

const toPem = (text: string): string => `${text.trim()}\n`;
