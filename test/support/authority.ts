// A certificate authority of a test.
import 'reflect-metadata';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';

/** An authority that signs certificates of servers and clients, for names and addresses. */
export async function newAuthority() {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const newKeys = () => crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const name = `CN=authority ${crypto.randomUUID()}`;
  const own = await newKeys();
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    name,
    keys: own,
    signingAlgorithm: algorithm,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  const sign = async (value: string): Promise<{ cert: string; key: string }> => {
    const keys = await newKeys();
    const signed = await x509.X509CertificateGenerator.create({
      ...validity,
      subject: `CN=${value}`,
      issuer: name,
      publicKey: keys.publicKey,
      signingKey: own.privateKey,
      signingAlgorithm: algorithm,
      extensions: [new x509.SubjectAlternativeNameExtension([{ type: isIP(value) === 0 ? 'dns' : 'ip', value }])],
    });
    const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
    return { cert: signed.toString('pem'), key: x509.PemConverter.encode(key, 'PRIVATE KEY') };
  };
  return { cert: cert.toString('pem'), sign };
}
