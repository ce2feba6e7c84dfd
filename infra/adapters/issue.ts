// How is a certificate made? X.509 by a library; read only when one is due (issuer.ts).
import 'reflect-metadata';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import type { Order, Pair } from '#core/ports/issuer.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** A CA that signs this one certificate, and is forgotten but for its own. */
export async function issue({ authority, names, from, until }: Order): Promise<Pair> {
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
  return { ca: `${ca.toString('pem').trim()}\n`, cert: `${cert.toString('pem').trim()}\n`, key: `${key.trim()}\n` };
}

/** Twenty bytes at most, and positive (RFC 5280, 4.1.2.2). */
function serial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}
