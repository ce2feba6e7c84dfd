// With which certificate do the stack's own servers speak TLS on this machine?
import 'reflect-metadata';
import type { webcrypto } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { writeWhole } from './state.ts';

/** PEM texts. `cert` and `key` are good for 127.0.0.1 and localhost; `ca` signed them. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const DAY = 86_400_000;
const LIFETIME = 365 * DAY;
const RENEW_BEFORE = 30 * DAY;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** The folder's certificates; made anew when there are none, they are damaged, or their end is near. */
export async function openCertificates(folder: string, now: Date): Promise<Certificates> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'certificates.json');
  const kept = existsSync(file) ? read(file, now) : undefined;
  if (kept !== undefined) return kept;
  const made = await issue(now);
  writeWhole(file, JSON.stringify(made, null, 2));
  return made;
}

function read(file: string, now: Date): Certificates | undefined {
  try {
    const { ca, cert, key } = JSON.parse(readFileSync(file, 'utf8')) as Certificates;
    const ends = Math.min(...[ca, cert].map((pem) => new x509.X509Certificate(pem).notAfter.getTime()));
    return ends - now.getTime() > RENEW_BEFORE && key.includes('PRIVATE KEY') ? { ca, cert, key } : undefined;
  } catch {
    return undefined;
  }
}

async function issue(now: Date): Promise<Certificates> {
  const authority = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const server = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const validity = { notBefore: new Date(now.getTime() - DAY), notAfter: new Date(now.getTime() + LIFETIME) };
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    serialNumber: serial(),
    name: 'CN=Gateway Operator local stack',
    keys: authority,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const cert = await x509.X509CertificateGenerator.create({
    ...validity,
    serialNumber: serial(),
    subject: 'CN=127.0.0.1',
    issuer: ca.subject,
    publicKey: server.publicKey,
    signingKey: authority.privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: 'ip', value: '127.0.0.1' },
        { type: 'dns', value: 'localhost' },
      ]),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  return { ca: ca.toString('pem'), cert: cert.toString('pem'), key: await privateKeyPem(server.privateKey) };
}

/** Twenty bytes at most, and positive (RFC 5280, 4.1.2.2). */
function serial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return Buffer.from(bytes).toString('hex');
}

async function privateKeyPem(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}
