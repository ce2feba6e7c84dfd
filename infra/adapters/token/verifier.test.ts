// Which tokens prove that the cluster issued them for us?
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { KubeTransport } from '../kubernetes/transport.ts';
import { createIssuerKeys } from './issuer.ts';
import { createTokenVerifier } from './verifier.ts';

const ISSUER = 'https://kubernetes.default.svc';
const AUDIENCE = 'https://admission.gateway-operator.svc:443/validate';
const NOW = Date.parse('2026-11-21T12:00:00Z') / 1000;

const first = await keyNamed('first');
const second = await keyNamed('second');
const stranger = await keyNamed('first');

async function keyNamed(kid: string, alg = 'RS256') {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

const token = (claims: JWTPayload = {}, key = first) =>
  new SignJWT({
    iss: ISSUER,
    aud: [AUDIENCE],
    sub: 'system:apiserver',
    iat: NOW,
    nbf: NOW,
    exp: NOW + 600,
    'kubernetes.io': { attestations: { admissionReviewAPIGroups: ['*'] } },
    ...claims,
  })
    .setProtectedHeader({ alg: key.alg, kid: key.kid })
    .sign(key.privateKey);

/** An API server that publishes these keys, and a verifier that asks it. */
function scene({ keys = [first.jwk], issuer = ISSUER }: { keys?: object[]; issuer?: string | undefined } = {}) {
  const api = { keys, issuer, status: 200, asked: [] as string[] };
  const request: KubeTransport = async ({ path, accept = 'application/json' }) => {
    api.asked.push(path);
    const keysWanted = path === '/openid/v1/jwks';
    const isAcceptable = accept === (keysWanted ? 'application/jwk-set+json' : 'application/json');
    const body = keysWanted ? { keys: api.keys } : { issuer: api.issuer, jwks_uri: 'https://elsewhere/' };
    return {
      status: isAcceptable ? api.status : 406,
      retryAfter: undefined,
      text: async () => JSON.stringify(body),
      stream: () => (async function* () {})(),
    };
  };
  const clock = { now: () => NOW * 1000 };
  const verifier = createTokenVerifier({ keys: createIssuerKeys({ request, clock }), clock });
  return { api, verify: (text: string, audience = AUDIENCE) => verifier.verify(text, audience), request, clock };
}

afterEach(() => {
  vi.useRealTimers();
});

describe('a token', () => {
  test('that the cluster issued for this address is good, and says who and what', async () => {
    expect(await scene().verify(await token())).toEqual({
      ok: true,
      claims: {
        subject: 'system:apiserver',
        kubernetes: { attestations: { admissionReviewAPIGroups: ['*'] } },
      },
    });
  });

  test('may be signed with an elliptic curve', async () => {
    const curve = await keyNamed('curve', 'ES256');
    expect(await scene({ keys: [curve.jwk] }).verify(await token({}, curve))).toMatchObject({ ok: true });
  });

  test.each([
    ['for another address', { aud: ['https://admission.gateway-operator.svc:443/mutate'] }, 'WrongAudience'],
    ['for nobody in particular', { aud: undefined }, 'WrongAudience'],
    ['in the name of another issuer', { iss: 'https://elsewhere' }, 'WrongIssuer'],
    ['in nobody’s name', { iss: undefined }, 'WrongIssuer'],
    ['that has expired', { exp: NOW - 31 }, 'Expired'],
    ['that never expires', { exp: undefined }, 'Malformed'],
    ['that is not valid yet', { nbf: NOW + 31 }, 'NotYetValid'],
  ] as const)('%s is refused', async (_, claims, problem) => {
    expect(await scene().verify(await token(claims as JWTPayload))).toEqual({ ok: false, problem });
  });

  test('is good for half a minute around its times, because clocks differ', async () => {
    expect(await scene().verify(await token({ exp: NOW - 29 }))).toMatchObject({ ok: true });
    expect(await scene().verify(await token({ nbf: NOW + 29 }))).toMatchObject({ ok: true });
  });

  test('that somebody else signed under the name of our key is refused', async () => {
    expect(await scene().verify(await token({}, stranger))).toEqual({ ok: false, problem: 'BadSignature' });
  });

  test('whose claims were changed after it was signed is refused', async () => {
    const [header, , signature] = (await token()).split('.');
    const [, other] = (await token({ aud: ['https://other'] })).split('.');
    expect(await scene().verify(`${header}.${other}.${signature}`, 'https://other')).toEqual({
      ok: false,
      problem: 'BadSignature',
    });
  });

  test('that says it needs no signature, or one that anybody can make from the public key, is refused', async () => {
    const [, payload] = (await token()).split('.');
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`;
    expect(await scene().verify(none)).toEqual({ ok: false, problem: 'Malformed' });
    const shared = new TextEncoder().encode(JSON.stringify(first.jwk));
    const symmetric = await new SignJWT({ iss: ISSUER, aud: AUDIENCE, exp: NOW + 600 })
      .setProtectedHeader({ alg: 'HS256', kid: 'first' })
      .sign(shared);
    expect(await scene().verify(symmetric)).toEqual({ ok: false, problem: 'Malformed' });
  });

  test.each([
    '',
    'x',
    '..',
    'a.b.c',
    'ä.ö.ü',
    '.'.repeat(5),
    'x'.repeat(20_000),
    '{"alg":"RS256"}',
    `${'e30'}.e30.e30`,
  ])('that is none (%#) is refused, and nobody is asked for keys twice', async (text) => {
    const { verify, api } = scene();
    expect(await verify(text)).toEqual({ ok: false, problem: 'Malformed' });
    expect(api.asked.length).toBeLessThanOrEqual(2);
  });
});

describe('keys', () => {
  test('are asked for once, however many tokens come', async () => {
    const { verify, api } = scene();
    for (let count = 0; count < 20; count += 1) await verify(await token());
    expect(api.asked).toEqual(['/.well-known/openid-configuration', '/openid/v1/jwks']);
  });

  test('are asked for anew when a token names one that is new, at most twice a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW * 1000 });
    const { verify, api } = scene();
    expect(await verify(await token())).toMatchObject({ ok: true });
    api.keys = [first.jwk, second.jwk];
    expect(await verify(await token({}, second))).toEqual({ ok: false, problem: 'UnknownKey' });
    vi.setSystemTime((NOW + 31) * 1000);
    expect(await verify(await token({}, second))).toMatchObject({ ok: true });
    expect(api.asked.filter((path) => path === '/openid/v1/jwks')).toHaveLength(2);
  });

  test('that the API server no longer publishes stop working within ten minutes', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW * 1000 });
    const { verify, api } = scene();
    await verify(await token());
    api.keys = [second.jwk];
    vi.setSystemTime((NOW + 601) * 1000);
    expect(await verify(await token())).toEqual({ ok: false, problem: 'UnknownKey' });
  });

  test('that cannot be read are nobody’s fault but the cluster’s: no verdict', async () => {
    const { verify, api } = scene();
    api.status = 403;
    await expect(verify(await token())).rejects.toThrow('/.well-known/openid-configuration: 403');
    api.status = 200;
    api.issuer = undefined as unknown as string;
    await expect(verify(await token())).rejects.toThrow('names no issuer');
    const named = createIssuerKeys({
      ...scene(),
      issuer: ISSUER,
      request: async () => Promise.reject(new Error('away')),
    });
    const verifier = createTokenVerifier({ keys: named, clock: { now: () => NOW * 1000 } });
    await expect(verifier.verify(await token(), AUDIENCE)).rejects.toThrow();
  });
});
