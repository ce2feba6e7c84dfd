// Look-ups of host names, outside of the threads that all instances share: getaddrinfo does a few at a time, each for
// seconds if no name server replies.
import dns from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { Millis } from '#core/ports/money.ts';

type Resolver = Pick<dns.promises.Resolver, 'resolve4' | 'resolve6'>;
type Options = Readonly<dns.LookupOptions>;
type Callback = (error: Error | null, address?: string | dns.LookupAddress[], family?: number) => void;

export interface LookupDependencies {
  readonly resolver: Resolver;
  /** The texts of /etc/hosts and /etc/resolv.conf. */
  readonly hosts: string;
  readonly resolvConf: string;
}

/** The timeout of the first attempt; the second one waits twice as long. */
const TIMEOUT: Millis = 2000;
const TRIES = 2;
/** Error codes after which the next search domain is tried, as in glibc. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);
const FAILED = new Set(['ESERVFAIL', 'EREFUSED']);

/** Makes all later connections of this process (PostgreSQL, Redis, HTTP) look up their hosts in this way. */
export function replaceNameLookup(nameServers?: ReadonlyArray<string>): void {
  const resolver = new dns.promises.Resolver({ timeout: TIMEOUT, tries: TRIES });
  if (nameServers !== undefined) resolver.setServers(nameServers);
  const [hosts, resolvConf] = [read('/etc/hosts'), read('/etc/resolv.conf')];
  const replacement = createNameLookup({ resolver, hosts, resolvConf });
  dns.lookup = Object.assign(replacement, { __promisify__: dns.lookup.__promisify__ }) as typeof dns.lookup;
}

/**
 * `dns.lookup` of /etc/hosts and the name servers, with the search domains and `ndots` of /etc/resolv.conf. IPv4
 * addresses come first.
 */
export function createNameLookup({ resolver, hosts, resolvConf }: LookupDependencies) {
  const known = parseHosts(hosts);
  const search = parseSearch(resolvConf);

  async function find(name: string, family: number): Promise<dns.LookupAddress[]> {
    const isAsked = (of: dns.LookupAddress) => family === 0 || of.family === family;
    const here = isIP(name) === 0 ? known.get(name.toLowerCase()) : [{ address: name, family: isIP(name) }];
    if (here?.some(isAsked)) return here.filter(isAsked);
    let hasFailed = false;
    for (const candidate of candidatesFor(name, search)) {
      const { addresses, codes } = await resolve(resolver, candidate, family);
      if (addresses.length > 0) return addresses;
      hasFailed ||= codes.some((code) => !ABSENT.has(code));
      if (!codes.every((code) => ABSENT.has(code) || FAILED.has(code))) break;
    }
    throw lookupError(hasFailed ? 'EAI_AGAIN' : 'ENOTFOUND', name);
  }

  return (name: string, given: Options | number | Callback, then?: Callback): void => {
    const options = typeof given === 'object' ? given : { family: typeof given === 'number' ? given : 0 };
    const callback = typeof given === 'function' ? given : (then ?? (() => undefined));
    const family = Number(String(options.family ?? 0).replace('IPv', ''));
    find(name, family).then(
      (addresses) =>
        options.all === true ? callback(null, addresses) : callback(null, addresses[0]?.address, addresses[0]?.family),
      (error: Error) => callback(error),
    );
  };
}

async function resolve(resolver: Resolver, name: string, family: number) {
  const [four, six] = await Promise.allSettled([
    family === 6 ? [] : resolver.resolve4(name),
    family === 4 ? [] : resolver.resolve6(name),
  ]);
  const addressesOf = (outcome: PromiseSettledResult<string[]>) =>
    outcome.status === 'fulfilled' ? outcome.value : [];
  return {
    addresses: [
      ...addressesOf(four).map((address) => ({ address, family: 4 })),
      ...addressesOf(six).map((address) => ({ address, family: 6 })),
    ],
    codes: [four, six].flatMap((outcome) => (outcome.status === 'rejected' ? [String(outcome.reason.code)] : [])),
  };
}

interface Search {
  readonly domains: ReadonlyArray<string>;
  readonly ndots: number;
}

/**
 * The names to look up: a name with at least `ndots` dots is tried unchanged first, another name unchanged last; a name
 * that ends in a dot only unchanged.
 */
function candidatesFor(name: string, { domains, ndots }: Search): string[] {
  if (name.endsWith('.')) return [name];
  const searched = domains.map((domain) => `${name}.${domain}`);
  return name.split('.').length > ndots ? [name, ...searched] : [...searched, name];
}

/** The last `search` or `domain` line counts. */
function parseSearch(resolvConf: string): Search {
  const lines = fieldsOf(resolvConf, /[#;].*/);
  const domains = lines.findLast(([word]) => word === 'search' || word === 'domain')?.slice(1) ?? [];
  const options = lines.filter(([word]) => word === 'options').flat();
  const ndots = options.findLast((option) => /^ndots:\d+$/.test(option))?.slice('ndots:'.length);
  return {
    domains: domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== ''),
    ndots: Number(ndots ?? 1),
  };
}

function parseHosts(hosts: string): ReadonlyMap<string, dns.LookupAddress[]> {
  const known = new Map<string, dns.LookupAddress[]>();
  for (const [address = '', ...names] of fieldsOf(hosts, /#.*/))
    for (const name of isIP(address) === 0 ? [] : names.map((text) => text.toLowerCase()))
      known.set(name, [...(known.get(name) ?? []), { address, family: isIP(address) }]);
  return known;
}

const fieldsOf = (text: string, comment: RegExp): string[][] =>
  text.split('\n').map((line) => line.replace(comment, '').trim().split(/\s+/));

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** The error as getaddrinfo reports it. */
const lookupError = (code: string, hostname: string): Error =>
  Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), { code, hostname, syscall: 'getaddrinfo' });
