// Keys of AWS: whose keys are used, when they are asked for, and what a person reads if there are none.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { createAwsKeys } from '../aws-keys.ts';

const signal = new AbortController().signal;
const NOW = Date.UTC(2026, 0, 1);
const END = new Date(NOW + 3_600_000).toISOString();
const tokenFile = join(temporaryFolder(), 'token');
writeFileSync(tokenFile, 'token-of-the-pod\n');
const role = { AWS_ROLE_ARN: 'arn:aws:iam::1:role/archive', AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile };
const noFetch: typeof globalThis.fetch = () => Promise.reject(new Error('nobody is asked'));

test('keys of the environment are used as they are, also in a Pod with a role', async () => {
  const own = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'secret' };
  const keysOf = createAwsKeys({ ...own, ...role }, { region: 'eu-central-1', fetch: noFetch, now: () => NOW });
  expect(await keysOf(signal)).toEqual({ accessKeyId: 'AKIA', secretAccessKey: 'secret' });
  const temporary = createAwsKeys(
    { ...own, AWS_SESSION_TOKEN: 'token' },
    { region: '', fetch: noFetch, now: () => NOW },
  );
  expect(await temporary(signal)).toEqual({ accessKeyId: 'AKIA', secretAccessKey: 'secret', sessionToken: 'token' });
});

test('keys of the role of a service account are kept until a minute before their end', async () => {
  let asked = 0;
  let now = NOW;
  const fetch = (async (url: string, { body }: { body: URLSearchParams }) => {
    asked += 1;
    expect(url).toBe('https://sts.eu-central-1.amazonaws.com/');
    expect(body.get('WebIdentityToken')).toBe('token-of-the-pod');
    return new Response(
      `<AccessKeyId>ASIA${asked}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${END}</Expiration>`,
    );
  }) as unknown as typeof globalThis.fetch;
  const keysOf = createAwsKeys(role, { region: 'eu-central-1', fetch, now: () => now });
  expect(await keysOf(signal)).toEqual({ accessKeyId: 'ASIA1', secretAccessKey: 's', sessionToken: 't' });
  now = Date.parse(END) - 61_000;
  expect((await keysOf(signal)).accessKeyId).toBe('ASIA1');
  now = Date.parse(END) - 60_000;
  expect((await keysOf(signal)).accessKeyId).toBe('ASIA2');
});

test('the agent of EKS is asked with the token of the Pod, without a proxy', async () => {
  const reply = { AccessKeyId: 'ASIA', SecretAccessKey: 's', Token: 't', Expiration: END };
  const agent = createServer(({ headers }, response) => {
    if (headers.authorization === 'token-of-the-pod') response.end(JSON.stringify(reply));
    else response.writeHead(403).end();
  });
  await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(agent.address() as AddressInfo).port}/v1/credentials`;
  const withToken = (more: object) =>
    createAwsKeys(
      { AWS_CONTAINER_CREDENTIALS_FULL_URI: url, ...more },
      { region: '', fetch: noFetch, now: () => NOW },
    )(signal);
  expect(await withToken({ AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile })).toEqual({
    accessKeyId: 'ASIA',
    secretAccessKey: 's',
    sessionToken: 't',
  });
  await expect(withToken({})).rejects.toThrow('status 403. Check the Pod Identity association');
  reply.Expiration = 'never';
  await expect(withToken({ AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile })).rejects.toThrow('has no keys');
  agent.closeAllConnections();
  agent.close();
});

test('without any of them, the message shows what to set', async () => {
  const keysOf = createAwsKeys({}, { region: 'eu-central-1', fetch: noFetch, now: () => NOW });
  await expect(keysOf(signal)).rejects.toThrow(
    'there are no keys of AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the service account of the reconciler a role',
  );
});
