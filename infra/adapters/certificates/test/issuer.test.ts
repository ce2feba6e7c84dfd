import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { expect, test } from 'vitest';
import { createIssuer } from '../issuer.ts';

const issuer = createIssuer();
const NAME = 'admission.gateway-operator.svc';
const now = Date.now();
const validity = { from: now - 60_000, until: now + 3_600_000 };
const [authority, another] = await Promise.all(
  ['Test', 'Other'].map((name) => issuer.issueAuthority({ name, ...validity })),
);
if (authority === undefined || another === undefined) throw new Error('no CA was made');
const order = { authority, names: [NAME], ...validity };
const [one, two] = await Promise.all([
  issuer.issue(order),
  issuer.issue({ ...order, authority: another, names: ['127.0.0.1', NAME] }),
]);

/** What a client that trusts `ca` and calls `servername` says of a server with this certificate. */
async function shake({ cert, key }: { cert: string; key: string }, ca: string, servername: string): Promise<string> {
  const server = createServer({ cert, key }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, ca, servername });
  const outcome = await once(socket, 'secureConnect').then(
    () => 'trusted',
    (error: NodeJS.ErrnoException) => String(error.code),
  );
  socket.destroy();
  server.close();
  return outcome;
}

test('a client that trusts the CA trusts the server under its names, and under no other', async () => {
  expect(await shake(one, one.ca, NAME)).toBe('trusted');
  expect(await shake(one, two.ca + one.ca, NAME)).toBe('trusted');
  expect(await shake(one, one.ca, 'other.gateway-operator.svc')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
  expect(await shake(one, two.ca, NAME)).toMatch(/SIGNATURE|ISSUER|LEAF/);
});

test('a pair holds from when to when it was ordered, in whole seconds', () => {
  const whole = (time: number) => Math.floor(time / 1000) * 1000;
  expect(issuer.inspect(one, [NAME])).toEqual({ from: whole(order.from), until: whole(order.until) });
});

test('a CA signs again later, and its own key belongs to it', async () => {
  const again = await issuer.issue(order);
  expect(again.ca).toBe(one.ca);
  expect(again.key).not.toBe(one.key);
  expect(await shake(again, one.ca, NAME)).toBe('trusted');
  expect(issuer.inspect({ ca: one.ca, ...authority }, [])).toBeDefined();
  expect(issuer.inspect({ ca: one.ca, cert: authority.cert, key: another.key }, [])).toBeUndefined();
});

test('a CA signs servers only, and a server nothing', () => {
  const [ca, cert] = [new X509Certificate(one.ca), new X509Certificate(one.cert)];
  expect([ca.ca, cert.ca]).toEqual([true, false]);
  expect(cert.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  expect(new X509Certificate(two.ca).serialNumber).not.toBe(ca.serialNumber);
});

test.each([
  ['the key of another', { ...one, key: two.key }, [NAME]],
  ['the CA of another', { ...one, ca: two.ca }, [NAME]],
  ['a server certificate in the place of the CA', { ...one, ca: one.cert }, [NAME]],
  ['a name that is missing', one, [NAME, '127.0.0.1']],
  ['a key cut short', { ...one, key: one.key.slice(0, 80) }, [NAME]],
  ['a certificate cut short', { ...one, cert: one.cert.slice(0, 200) }, [NAME]],
  ['nothing', { ca: '', cert: '', key: '' }, []],
])('%s makes it no pair', (_, pair, names) => {
  expect(issuer.inspect(pair, names)).toBeUndefined();
});

test('a bundle is split into certificates in one form, and what is none is left out', () => {
  const crlf = one.ca.replaceAll('\n', '\r\n');
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  expect(issuer.split(`# ours\n${crlf}${broken}${one.ca}${two.ca}`)).toEqual([one.ca, two.ca]);
  expect(issuer.split('')).toEqual([]);
});
