// Proxies of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), for calls that leave the cluster.
import { BlockList, isIP } from 'node:net';
import type { ProxyAgent } from 'undici';

export interface ProxyEnvironment {
  readonly HTTPS_PROXY?: string | undefined;
  readonly HTTP_PROXY?: string | undefined;
  readonly NO_PROXY?: string | undefined;
}

/** Returns the address of the proxy for a URL; undefined: the URL is called directly. */
export type ProxyFor = (url: URL) => string | undefined;

/** Returns a function that never names a proxy if the environment has none. */
export function createProxyFor({ HTTPS_PROXY, HTTP_PROXY, NO_PROXY = '' }: ProxyEnvironment): ProxyFor {
  const direct = NO_PROXY.split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(toRule);
  return ({ protocol, hostname, port }) => {
    const proxy = protocol === 'https:' ? HTTPS_PROXY : HTTP_PROXY;
    if (proxy === undefined) return undefined;
    const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
    const target: Target = { host, family: isIP(host), port: port || (protocol === 'https:' ? '443' : '80') };
    return isInside(target) || direct.some((matches) => matches(target)) ? undefined : proxy;
  };
}

interface Target {
  readonly host: string;
  /** 4 or 6 for an address, 0 for a name. */
  readonly family: number;
  readonly port: string;
}

const LOCAL = new BlockList();
LOCAL.addSubnet('127.0.0.0', 8, 'ipv4');
LOCAL.addAddress('::1', 'ipv6');
// Metadata servers of clouds, which answer on the node only.
LOCAL.addSubnet('169.254.0.0', 16, 'ipv4');

/**
 * Whether no proxy is used for the target: loopback, a name without a dot, and names that only the cluster or its node
 * knows.
 */
function isInside({ host, family }: Target): boolean {
  if (family !== 0) return isIn(LOCAL, host, family);
  return !host.includes('.') || /\.(?:svc|cluster\.local|localhost)$/.test(host) || host === 'metadata.google.internal';
}

/**
 * A rule for an entry of NO_PROXY, as curl and Go read it: `*`, an address, a CIDR block, a name (which includes its
 * subdomains), or `.suffix` (subdomains only); a name and an address may have a port. An entry that is none of these is
 * a name that no host has.
 */
function toRule(entry: string): (target: Target) => boolean {
  if (entry === '*') return () => true;
  const block = toBlock(entry);
  if (block !== undefined) return ({ host, family }) => family !== 0 && isIn(block, host, family);
  const [, name = '', port] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
  const bare = name.replace(/^\[|\]$/g, '').replace(/^\*(?=\.)/, '');
  return (target) =>
    (port === undefined || port === target.port) &&
    (target.host === bare || target.host.endsWith(bare.startsWith('.') ? bare : `.${bare}`));
}

/** Returns the addresses of an entry like `10.0.0.0/8` or `fd00::5`; undefined: it is neither. */
function toBlock(entry: string): BlockList | undefined {
  const [, address = '', bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const family = isIP(address);
  const block = new BlockList();
  const max = family === 4 ? 32 : 128;
  if (family === 0 || Number(bits ?? max) > max) return undefined;
  block.addSubnet(address, Number(bits ?? max), family === 4 ? 'ipv4' : 'ipv6');
  return block;
}

const isIn = (block: BlockList, host: string, family: number): boolean =>
  block.check(host, family === 4 ? 'ipv4' : 'ipv6');

/** Milliseconds that a connection through a proxy may take. */
const CONNECT = 10_000;

/** `fetch` that uses the proxies. Without any it is the platform's own. */
export function createFetch(proxyFor: ProxyFor): typeof globalThis.fetch {
  const agents = new Map<string, ProxyAgent>();
  return async (input, init = {}) => {
    const proxy = input instanceof Request ? undefined : proxyFor(new URL(input));
    if (proxy === undefined || input instanceof Request) return fetch(input, init);
    // Loaded by the first call: most clusters have no proxy.
    const { fetchThrough, openProxy } = await import('./proxy-agent.ts');
    const agent = agents.get(proxy) ?? openProxy(proxy, CONNECT);
    agents.set(proxy, agent);
    return fetchThrough(input, init, agent);
  };
}
