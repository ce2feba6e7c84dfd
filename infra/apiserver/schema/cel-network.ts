// What do `url()`, `ip()` and `cidr()` tell a CEL rule?
import { BlockList, isIP, isIPv4 } from 'node:net';
import type { Environment } from '@marcbachmann/cel-js';
import { formatFits } from './formats.ts';

class Url {
  readonly parsed: URL;
  /** The host with its port as written: the URL class drops a port that is the scheme's own. */
  readonly host: string;
  constructor(text: string) {
    if (!isUrl(text)) throw new Error(`URL parse error during conversion from string: ${text}`);
    this.parsed = new URL(text, 'relative:///');
    this.host = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#]*)/i.exec(text)?.[1] ?? '';
  }
}

class Ip {
  readonly text: string;
  constructor(text: string) {
    if (isIP(text) === 0) throw new Error(`IP Address "${text}" parse error during conversion from string`);
    this.text = isIPv4(text) ? text : new URL(`http://[${text}]/`).hostname.slice(1, -1);
  }
}

class Cidr {
  readonly ip: Ip;
  readonly bits: number;
  constructor(text: string) {
    if (!formatFits('cidr', text))
      throw new Error(`network address parse error during conversion from string: ${text}`);
    const [address = '', bits = ''] = text.split('/');
    this.ip = new Ip(address);
    this.bits = Number(bits);
  }
  has(ip: Ip): boolean {
    if (isIPv4(ip.text) !== isIPv4(this.ip.text)) return false;
    const list = new BlockList();
    list.addSubnet(this.ip.text, this.bits, family(this.ip));
    return list.check(ip.text, family(ip));
  }
}

/** Kubernetes' URL, IP and CIDR libraries. */
export function registerNetwork(environment: Environment): void {
  const add = (signature: string, handler: (...values: never[]) => unknown) =>
    environment.registerFunction(signature, handler);
  for (const [name, ctor] of Object.entries({ URL: Url, IP: Ip, CIDR: Cidr })) {
    environment.registerType(`net.${name}`, { ctor, fields: {} });
  }
  add('isURL(string): bool', isUrl);
  add('url(string): net.URL', (text: string) => new Url(text));
  add('net.URL.getScheme(): string', ({ parsed }: Url) =>
    parsed.protocol === 'relative:' ? '' : parsed.protocol.slice(0, -1),
  );
  add('net.URL.getHost(): string', ({ host }: Url) => host);
  add('net.URL.getHostname(): string', ({ parsed }: Url) => parsed.hostname.replace(/^\[|\]$/g, ''));
  add('net.URL.getPort(): string', ({ host }: Url) => /:(\d+)$/.exec(host)?.[1] ?? '');
  add('net.URL.getEscapedPath(): string', ({ parsed }: Url) => parsed.pathname);
  add('net.URL.getQuery(): map', ({ parsed }: Url) => queryOf(parsed));
  add('isIP(string): bool', (text: string) => isIP(text) !== 0);
  add('ip(string): net.IP', (text: string) => new Ip(text));
  add('net.IP.family(): int', ({ text }: Ip) => (isIPv4(text) ? 4n : 6n));
  add('net.IP.isLoopback(): bool', ({ text }: Ip) => text === '::1' || text.startsWith('127.'));
  add('net.IP.isUnspecified(): bool', ({ text }: Ip) => text === '::' || text === '0.0.0.0');
  add('string(net.IP): string', ({ text }: Ip) => text);
  add('isCIDR(string): bool', (text: string) => formatFits('cidr', text));
  add('cidr(string): net.CIDR', (text: string) => new Cidr(text));
  add('net.CIDR.containsIP(string): bool', (cidr: Cidr, text: string) => cidr.has(new Ip(text)));
  add('net.CIDR.containsIP(net.IP): bool', (cidr: Cidr, ip: Ip) => cidr.has(ip));
  add('net.CIDR.containsCIDR(string): bool', (cidr: Cidr, text: string) => holds(cidr, new Cidr(text)));
  add('net.CIDR.containsCIDR(net.CIDR): bool', holds);
  add('net.CIDR.ip(): net.IP', ({ ip }: Cidr) => ip);
  add('net.CIDR.prefixLength(): int', ({ bits }: Cidr) => BigInt(bits));
  add('string(net.CIDR): string', ({ ip, bits }: Cidr) => `${ip.text}/${bits}`);
}

function holds(cidr: Cidr, other: Cidr): boolean {
  return other.bits >= cidr.bits && cidr.has(other.ip);
}

function family(ip: Ip): 'ipv4' | 'ipv6' {
  return isIPv4(ip.text) ? 'ipv4' : 'ipv6';
}

function isUrl(text: string): boolean {
  return (text.startsWith('/') || /^[a-z][a-z0-9+.-]*:/i.test(text)) && URL.canParse(text, 'relative:///');
}

function queryOf({ searchParams }: URL): Record<string, string[]> {
  return Object.fromEntries([...searchParams.keys()].map((key) => [key, searchParams.getAll(key)]));
}
