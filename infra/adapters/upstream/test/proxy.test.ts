// Providers behind a proxy.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { startConnectProxy } from '../../../../test/doubles/connect-proxy.ts';
import { createFetch } from '../../process/proxies.ts';
import { createUpstream } from '../undici.ts';
import { promisesOfUpstream } from './upstream.promises.ts';

const shared = await startConnectProxy();
const through = createUpstream({ proxyFor: () => shared.url });
afterAll(async () => {
  await through.close();
  await shared.close();
});
promisesOfUpstream('undici through a proxy', through);

async function open(answer?: number | 'never') {
  const proxy = await startConnectProxy(answer);
  const provider = createServer((_, response) => void response.end('hello'));
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  const target = `127.0.0.1:${(provider.address() as AddressInfo).port}`;
  onTestFinished(async () => {
    await proxy.close();
    provider.closeAllConnections();
    await new Promise((resolve) => provider.close(resolve));
  });
  const call = async (proxyUrl = proxy.url) => {
    const upstream = createUpstream({ proxyFor: () => proxyUrl });
    onTestFinished(upstream.close);
    const timeouts = { connect: 500, firstByte: 2_000, idle: 60_000 };
    const signal = new AbortController().signal;
    return upstream({ url: `http://${target}/v1`, headers: {}, body: ['x'], timeouts, signal });
  };
  return { proxy, target, call };
}

describe('a proxy', () => {
  test('gets the name and port of the provider, and its own credentials', async () => {
    const { proxy, target, call } = await open();
    expect((await call(proxy.url.replace('//', '//me:p%40ss@'))).status).toBe(200);
    expect(proxy.asked).toEqual([`me:p@ss@${target}`]);
  });

  test.each([[403], [407], [502], ['never']] as const)(
    'that answers a tunnel with %s: the provider was never reached, so nothing is charged',
    async (answer) => {
      const { call } = await open(answer);
      await expect(call()).rejects.toMatchObject({ kind: expect.stringMatching(/^(refused|unsent)$/) });
    },
  );

  test('that is away: the provider was never reached', async () => {
    const { proxy, call } = await open();
    await proxy.close();
    await expect(call()).rejects.toMatchObject({ kind: expect.stringMatching(/^(refused|unsent)$/) });
  });

  test('is used by the fetch of token services and Upstash', async () => {
    const { proxy, target } = await open();
    expect(await (await createFetch(() => proxy.url)(`http://${target}/`)).text()).toBe('hello');
    expect(await (await createFetch(() => undefined)(`http://${target}/`)).text()).toBe('hello');
    expect(proxy.asked).toEqual([target]);
  });
});
