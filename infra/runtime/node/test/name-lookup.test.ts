// Look-ups of host names, as the C library of a Pod does them.
import { expect, test } from 'vitest';
import { createNameLookup } from '../name-lookup.ts';

const HOSTS = '127.0.0.1 localhost # here\n::1 localhost ip6-localhost\n\n10.0.0.9 Alias other\nnonsense name\n';
const POD = 'nameserver 10.96.0.10\nsearch apps.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n';
const ZONE: Readonly<Record<string, string | ReadonlyArray<string>>> = {
  'cluster-rw.db.svc.cluster.local': ['10.1.0.1', 'fd00::1'],
  'db.example.com': ['192.0.2.1'],
  'six.example.com': ['2001:db8::1'],
  'broken.svc.cluster.local': 'ESERVFAIL',
  'broken.cluster.local': ['10.1.0.2'],
  'servfail.example.com': 'ESERVFAIL',
  'silent.example.com': 'ETIMEOUT',
  'silent.apps.svc.cluster.local': 'ETIMEOUT',
};

/** Looks up a name; returns its addresses or the error's code, and the names that the name server was asked for. */
async function lookUp(name: string, options: object = { all: true }, resolvConf = POD) {
  const names: string[] = [];
  const answer = (isWantedByOthers: (address: string) => boolean) => async (asked: string) => {
    if (names.at(-1) !== asked) names.push(asked);
    const found = ZONE[asked] ?? 'ENOTFOUND';
    if (typeof found === 'string') throw Object.assign(new Error(found), { code: found });
    const addresses = found.filter(isWantedByOthers);
    if (addresses.length === 0) throw Object.assign(new Error('no such record'), { code: 'ENODATA' });
    return addresses;
  };
  const [resolve4, resolve6] = [
    answer((address) => !address.includes(':')),
    answer((address) => address.includes(':')),
  ];
  // The client's overloads with options are not called.
  const resolver = { resolve4, resolve6 } as unknown as Parameters<typeof createNameLookup>[0]['resolver'];
  const lookup = createNameLookup({ resolver, hosts: HOSTS, resolvConf });
  const outcome = await new Promise((resolve) =>
    lookup(name, options, (error, ...of) =>
      resolve(error === null ? of : [(error as NodeJS.ErrnoException).code, error.message]),
    ),
  );
  return { outcome, names };
}

const four = (address: string) => ({ address, family: 4 });
const six = (address: string) => ({ address, family: 6 });

test.each([
  ['localhost', [four('127.0.0.1'), six('::1')]],
  ['ALIAS', [four('10.0.0.9')]],
  ['10.2.0.1', [four('10.2.0.1')]],
])('%s needs no name server', async (name, addresses) => {
  expect(await lookUp(name)).toEqual({ outcome: [addresses], names: [] });
});

test.each([
  ['a Service', 'cluster-rw.db.svc', POD, [four('10.1.0.1'), six('fd00::1')], 3],
  ['a name of the internet', 'db.example.com', POD, [four('192.0.2.1')], 4],
  ['a name that is complete', 'db.example.com.', POD, 'ENOTFOUND', 1],
  ['a name with as many dots as ndots', 'db.example.com', 'search a.test b.test', [four('192.0.2.1')], 1],
  ['a name that has IPv6 addresses only', 'six.example.com', '', [six('2001:db8::1')], 1],
  ['a name that one search domain fails for', 'broken', POD, [four('10.1.0.2')], 3],
  ['a name that nobody has', 'nobody.example.com', POD, 'ENOTFOUND', 4],
  ['a name whose name server fails', 'servfail.example.com', POD, 'EAI_AGAIN', 4],
  ['a name that nobody answers', 'silent.example.com', POD, 'EAI_AGAIN', 4],
  ['a name that nobody answers at the first search domain', 'silent', POD, 'EAI_AGAIN', 1],
])('%s is looked up with the search domains in order', async (_, name, resolvConf, found, questions) => {
  const { outcome, names } = await lookUp(name, { all: true }, resolvConf);
  expect(outcome).toEqual(typeof found === 'string' ? [found, `getaddrinfo ${found} ${name}`] : [found]);
  expect(names).toHaveLength(questions);
});

test.each([
  [{}, ['10.1.0.1', 4]],
  [{ family: 6 }, ['fd00::1', 6]],
  [{ family: 'IPv4', all: true }, [[four('10.1.0.1')]]],
])('the options %o choose what is returned', async (options, expected) => {
  expect((await lookUp('cluster-rw.db.svc', options)).outcome).toEqual(expected);
});
