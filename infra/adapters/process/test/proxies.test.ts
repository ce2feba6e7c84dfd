import { describe, expect, test } from 'vitest';
import { createProxyFor } from '../proxies.ts';

const HTTPS_PROXY = 'http://proxy.example.com:3128';
const HTTP_PROXY = 'http://plain.example.com:3128';
const isProxied = (NO_PROXY: string, url: string) =>
  createProxyFor({ HTTPS_PROXY, HTTP_PROXY, NO_PROXY })(new URL(url)) !== undefined;

describe('the proxy of an address', () => {
  test('is chosen by the scheme; without a variable there is none', () => {
    const both = createProxyFor({ HTTPS_PROXY, HTTP_PROXY });
    expect(both(new URL('https://api.openai.com/v1'))).toBe(HTTPS_PROXY);
    expect(both(new URL('http://api.example.com/v1'))).toBe(HTTP_PROXY);
    expect(createProxyFor({ HTTPS_PROXY })(new URL('http://api.example.com'))).toBeUndefined();
    expect(createProxyFor({})(new URL('https://api.openai.com'))).toBeUndefined();
  });

  test.each([
    'https://localhost',
    'https://gateway.localhost:8080',
    'https://127.0.0.1:8443',
    'https://127.9.9.9',
    'https://[::1]:8443',
    'https://redis',
    'https://vllm.models.svc',
    'https://vllm.models.svc.cluster.local',
    'https://vllm.models.svc.cluster.local.',
    'http://169.254.169.254/latest',
    'http://metadata.google.internal/computeMetadata',
  ])('never leads to %s', (url) => {
    expect(isProxied('', url)).toBe(false);
  });

  test.each([
    ['example.com', 'https://example.com', false],
    ['example.com', 'https://EXAMPLE.com', false],
    ['Example.COM', 'https://api.example.com', false],
    ['example.com', 'https://myexample.com', true],
    ['.example.com', 'https://api.example.com', false],
    ['.example.com', 'https://example.com', true],
    ['*.example.com', 'https://api.example.com', false],
    ['example.com:8443', 'https://example.com:8443', false],
    ['example.com:8443', 'https://example.com', true],
    ['example.com:443', 'https://example.com', false],
    ['10.0.0.0/8', 'https://10.1.2.3', false],
    ['10.0.0.0/8', 'https://11.1.2.3', true],
    ['10.1.2.3', 'https://10.1.2.3', false],
    ['10.1.2.3:8443', 'https://10.1.2.3:8443', false],
    ['10.1.2.3:8443', 'https://10.1.2.3', true],
    ['10.1.2.3', 'https://10.1.2.30', true],
    ['fd00::/8', 'https://[fd00::5]:443', false],
    ['fd00::5', 'https://[fd00:0::5]', false],
    ['fd00::5', 'https://[fd00::6]', true],
    ['10.0.0.0/8', 'https://10.example.com', true],
    ['*', 'https://api.openai.com', false],
    ['a.example.com, b.example.com', 'https://b.example.com', false],
    ['10.0.0.0/33', 'https://10.0.0.1', true],
    ['', 'https://10.0.0.1', true],
    [',', 'https://api.openai.com', true],
  ])('NO_PROXY=%s, %s: proxied %s', (noProxy, url, proxied) => {
    expect(isProxied(noProxy, url)).toBe(proxied);
  });
});
