import { createHash, createHmac, generateKeyPairSync, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Signing, Upstream, UpstreamRequest } from '#core/ports/upstream.ts';
import { createFetchUpstream } from '../fetch.ts';
import { createPodIdentity } from '../pod-identity.ts';
import { createUpstream } from '../undici.ts';

const NOW = Date.UTC(2026, 10, 23, 9, 30);
const timer = (millis: number, callback: () => void) => {
  const running = setTimeout(callback, millis);
  return () => clearTimeout(running);
};

interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let server: Server;
let base: string;
let seen: ReceivedRequest[];
/** The answer to each path; absent: 200. */
let status: (path: string) => number;
let now: number;

beforeEach(async () => {
  [seen, now, status] = [[], NOW, () => 200];
  server = createServer(async (request, response) => {
    const { url: path = '', headers } = request;
    seen.push({ path, headers, body: await text(request) });
    const token = path === '/token' ? { access_token: `token-${seen.length}`, expires_in: 3600 } : {};
    response.writeHead(status(path), { 'content-type': 'application/json' }).end(JSON.stringify(token));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => void server.close());

const UPSTREAMS: ReadonlyArray<[string, () => Upstream]> = [
  ['undici', () => createUpstream({ now: () => now })],
  ['fetch', () => createFetchUpstream({ fetch: fetchOfWorkers, timer, now: () => now })],
];

/** As on Workers, which refuse a call that asks for an error on redirects. */
function fetchOfWorkers(...[input, init]: Parameters<typeof fetch>): ReturnType<typeof fetch> {
  if (init?.redirect === 'error') throw new TypeError('Invalid redirect value');
  return fetch(input, init);
}

const requestOf = (signing: Signing | undefined, body: UpstreamRequest['body'] = ['{"model":', '"ünï"}']) => ({
  url: `${base}/openai/v1/chat/completions?x=1`,
  body,
  signing,
  signal: new AbortController().signal,
  headers: { 'content-type': 'application/json', accept: 'application/json' },
  timeouts: { connect: 5000, firstByte: 5000, idle: 5000 },
});

const AWS: Signing = {
  signer: 'aws',
  service: 'bedrock',
  region: 'eu-central-1',
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'session/+=',
};
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const google = (): Signing => ({
  signer: 'google',
  clientEmail: 'gateway@project.iam.gserviceaccount.com',
  privateKeyId: 'key-1',
  privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  tokenUri: `${base}/token`,
});

describe.each(UPSTREAMS)('a request by %s', (_, make) => {
  test('for AWS has the signature that AWS computes from the received request', async () => {
    await make()(requestOf(AWS));
    const [request] = seen;
    expect(request?.headers['x-amz-security-token']).toBe('session/+=');
    expect(request?.headers['x-amz-date']).toBe('20261123T093000Z');
    expect(request?.body).toBe('{"model":"ünï"}');
    expect(request?.headers.authorization).toBe(request && authorizationOf(request));
  });

  test('for Google has a token for a signed assertion, which is fetched once until it ends', async () => {
    const upstream = make();
    await upstream(requestOf(google()));
    await upstream(requestOf(google()));
    expect(seen.map(({ path }) => path.slice(0, 7))).toEqual(['/token', '/openai', '/openai']);
    expect(seen.map(({ headers }) => headers.authorization)).toEqual([undefined, 'Bearer token-1', 'Bearer token-1']);
    const form = new URLSearchParams(seen[0]?.body);
    expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer');
    const [head = '', claims = '', signature = ''] = form.get('assertion')?.split('.') ?? [];
    const isSigned = verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${claims}`),
      publicKey,
      Buffer.from(signature, 'base64url'),
    );
    expect(isSigned).toBe(true);
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({
      iss: 'gateway@project.iam.gserviceaccount.com',
      aud: `${base}/token`,
      iat: NOW / 1000,
      exp: NOW / 1000 + 3600,
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    });
    now += 3_590_000;
    await upstream(requestOf(google()));
    expect(seen.at(-1)?.headers.authorization).toBe('Bearer token-4');
  });

  test('whose key file differs from another only in the private key does not get the token of that file', async () => {
    const upstream = make();
    await upstream(requestOf(google()));
    const forged = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    const pem = forged.export({ type: 'pkcs8', format: 'pem' }).toString();
    status = (path) => (path === '/token' ? 403 : 200);
    const asked = upstream(requestOf({ ...google(), privateKey: pem } as Signing));
    await expect(asked).rejects.toMatchObject({ kind: 'not signed' });
    expect(seen.map(({ path }) => path.slice(0, 7))).toEqual(['/token', '/openai', '/token']);
  });

  test('fetches another token after a 401', async () => {
    const upstream = make();
    status = (path) => (path === '/token' ? 200 : 401);
    await upstream(requestOf(google()));
    await upstream(requestOf(google()));
    expect(seen.map(({ path }) => path.slice(0, 7))).toEqual(['/token', '/openai', '/token', '/openai']);
  });

  test.each<[string, () => Signing]>([
    ['Google refuses a token', google],
    ['the private key is none', () => ({ ...google(), privateKey: 'no key' }) as Signing],
    [
      'nobody answers at the address of tokens',
      () => ({ ...google(), tokenUri: 'http://127.0.0.1:1/token' }) as Signing,
    ],
  ])('is not sent if %s', async (_, signing) => {
    status = () => 403;
    await expect(make()(requestOf(signing()))).rejects.toMatchObject({ name: 'UpstreamError', kind: 'not signed' });
    expect(seen.filter(({ path }) => path !== '/token')).toEqual([]);
  });

  test('without signing is sent unchanged', async () => {
    await make()(requestOf(undefined));
    expect(seen[0]?.headers.authorization).toBeUndefined();
  });
});

describe('a request with the role of the Pod', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pod-identity-'));
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'the-token\n');
  afterAll(() => rmSync(folder, { recursive: true }));
  const role = { arn: 'arn:aws:iam::1:role/gateway', tokenFile };
  const AWS_ROLE: Signing = { signer: 'pod-role', issuer: 'aws', service: 'bedrock', region: 'eu-west-1' };
  const KEYS = `<Credentials><AccessKeyId>ASIAPOD</AccessKeyId><SecretAccessKey>s/e+c=</SecretAccessKey>
    <SessionToken>session/+=</SessionToken><Expiration>${new Date(NOW + 3_600_000).toISOString()}</Expiration></Credentials>`;

  function open(answer: () => Response, given: typeof role | null = role) {
    const calls: Array<{ url: string; init: RequestInit }> = [];
    const fake = async (url: unknown, init: RequestInit = {}) => {
      calls.push({ url: String(url), init });
      return answer();
    };
    const pod = createPodIdentity({ role: given ?? undefined, fetch: fake as typeof fetch, now: () => now });
    return { calls, upstream: createUpstream({ now: () => now, pod }) };
  }

  test('of AWS is signed with keys for its token, which are fetched again before their end', async () => {
    const { calls, upstream } = open(() => new Response(KEYS));
    await upstream(requestOf(AWS_ROLE));
    await upstream(requestOf(AWS_ROLE));
    expect(calls.map(({ url }) => url)).toEqual(['https://sts.eu-west-1.amazonaws.com/']);
    expect(Object.fromEntries(calls[0]?.init.body as URLSearchParams)).toMatchObject({
      Action: 'AssumeRoleWithWebIdentity',
      RoleArn: role.arn,
      WebIdentityToken: 'the-token',
    });
    expect(seen[1]?.headers.authorization).toContain('Credential=ASIAPOD/20261123/eu-west-1/bedrock/aws4_request');
    expect(seen[1]?.headers['x-amz-security-token']).toBe('session/+=');
    now += 3_550_000;
    await upstream(requestOf(AWS_ROLE));
    expect(calls).toHaveLength(2);
  });

  test('of Google has the token of the metadata server', async () => {
    const { calls, upstream } = open(() => Response.json({ access_token: 'pod-token', expires_in: 3600 }));
    await upstream(requestOf({ signer: 'pod-role', issuer: 'google' }));
    expect(calls[0]?.init.headers).toEqual({ 'metadata-flavor': 'Google' });
    expect(seen[0]?.headers.authorization).toBe('Bearer pod-token');
  });

  test.each<[string, () => Upstream]>([
    ['AWS refuses it', () => open(() => new Response('', { status: 403 })).upstream],
    ['the Pod has none', () => open(() => new Response(KEYS), null).upstream],
    ['the answer has no keys', () => open(() => new Response('<html>')).upstream],
    ['it is a Worker', () => createFetchUpstream({ fetch, timer, now: () => now })],
  ])('is not sent if %s', async (_, make) => {
    await expect(make()(requestOf(AWS_ROLE))).rejects.toMatchObject({ name: 'UpstreamError', kind: 'not signed' });
    expect(seen).toEqual([]);
  });
});

/** SigV4 as AWS's reference describes it for a POST, over the headers that the request names as signed. */
function authorizationOf({ path, headers, body }: ReceivedRequest): string {
  const [, scope = '', names = ''] =
    /Credential=AKIDEXAMPLE\/([^,]+), SignedHeaders=([^,]+), Signature=/.exec(headers.authorization ?? '') ?? [];
  expect(names.split(';')).toEqual(expect.arrayContaining(['host', 'x-amz-date', 'x-amz-security-token']));
  const sha256 = (of: string) => createHash('sha256').update(of).digest('hex');
  const hmac = (key: string | Buffer, of: string) => createHmac('sha256', key).update(of).digest();
  const [resource = '', query = ''] = path.split('?');
  const signedHeaders = names.split(';').map((name) => `${name}:${headers[name]}\n`);
  const canonical = ['POST', resource, query, signedHeaders.join(''), names, sha256(body)].join('\n');
  const date = String(headers['x-amz-date']);
  const toSign = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n');
  expect(scope).toBe('20261123/eu-central-1/bedrock/aws4_request');
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${AWS.signer === 'aws' ? AWS.secretAccessKey : ''}`);
  const signature = hmac(key, toSign).toString('hex');
  return `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/${scope}, SignedHeaders=${names}, Signature=${signature}`;
}
