// The functions in Pods with one address family: on IPv6 alone, on IPv4 alone, and on both.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { openCertificates } from '../../infra/platforms/local/cluster/certificates.ts';
import { entry, snapshotOf } from '../gateway/instance.ts';
import { startChild } from '../support/child.ts';
import { whyNoRedis } from '../support/redis.ts';
import { linkBundles } from '../support/shared-servers.ts';
import { describeUnless, testUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { Answers, PortAnswer } from './ask-each-port.ts';
import { ADMISSION_PATH, RECONCILE_TOKEN } from './node-process.ts';

/**
 * What makes a network of one family of a new one. IPv6 is off in two ways: without addresses, and without the
 * protocol.
 */
const NETWORKS = {
  both: 'true',
  'IPv6 alone': 'ip -4 address flush dev lo',
  'IPv4 alone': 'ip -6 address flush dev lo',
  'IPv4 alone, with disable_ipv6': 'sysctl -qw net.ipv6.conf.all.disable_ipv6=1',
  // The kernel gives IPv6 sockets that take no IPv4 unless they ask for it.
  'both, with bindv6only': 'sysctl -qw net.ipv6.bindv6only=1',
} as const;

/** `user`: whether a user may do it; then no other user exists there. */
const inNetwork = (setUp: string, command: ReadonlyArray<string>, user = ['--map-root-user']) => {
  const script = `ip link set lo up && ${setUp} && exec "$@"`;
  return startChild('unshare', ['--net', '--mount', ...user, 'sh', '-c', script, 'sh', ...command]).ended;
};

const tried = await inNetwork('ip -6 address show dev lo | grep -q ::1', ['true']).catch(() => ({ code: -1 }));
const why = tried.code === 0 ? undefined : 'no network of its own with IPv6 can be made here (unshare, ip)';

/** PostgreSQL runs as another user. */
const whyNoRoot = process.getuid?.() === 0 ? undefined : 'only root makes a network for several users';

describeUnless(why, 'the functions', () => {
  const folder = temporaryFolder();
  const file = join(folder, 'functions.json');

  beforeAll(async () => {
    await linkBundles(folder);
    const write = (path: string, text: string) => {
      mkdirSync(join(folder, path, '..'), { recursive: true });
      writeFileSync(join(folder, path), text);
      return join(folder, path);
    };
    const { cert, key } = await openCertificates(join(folder, 'certificates'), new Date());
    // Nobody is there: the functions answer nevertheless.
    const api = { KUBERNETES_SERVICE_HOST: '::1', RECONCILE_TOKEN };
    for (const [name, text] of Object.entries({ host: '[::1]', username: 'u', password: 'p', dbname: 'd' }))
      write(`database/${name}`, text);
    write('store/host', 'memory');
    mkdirSync(join(folder, 'journal'));
    const mounts = {
      SNAPSHOT_FILE: write('snapshot.json', JSON.stringify(snapshotOf([entry('small')]))),
      DATABASE_DIR: join(folder, 'database'),
      STORE_DIR: join(folder, 'store'),
      CREDENTIALS_DIR: join(folder, 'credentials'),
      JOURNAL_DIR: join(folder, 'journal'),
    };
    const tls = { TLS_CERT_FILE: write('tls.crt', cert), TLS_KEY_FILE: write('tls.key', key) };
    const functions: ReadonlyArray<PortAnswer> = [
      { bundle: join(folder, 'node/admission.mjs'), environment: { ...api, ...tls, PATH_SECRETS: ADMISSION_PATH } },
      { bundle: join(folder, 'node/reconcile.mjs'), environment: api },
      { bundle: join(folder, 'node/gateway.mjs'), environment: mounts },
    ];
    write('functions.json', JSON.stringify(functions));
  });

  test.each(Object.entries(NETWORKS))('answer on every port that a Pod has, on %s', async (name, setUp) => {
    const program = join(import.meta.dirname, 'ask-each-port.ts');
    const { code, stdout, stderr } = await inNetwork(setUp, [process.execPath, program, file]);
    expect(`${code} ${stderr}`).toBe('0 ');
    const answers = JSON.parse(stdout) as Answers;
    expect(Object.keys(answers)).toHaveLength(6);
    const answered = (family: 0 | 1) => Object.values(answers).filter((both) => both[family] === '200').length;
    expect([answered(0), answered(1)], stdout).toEqual([
      name === 'IPv6 alone' ? 0 : 6,
      name.startsWith('IPv4') ? 0 : 6,
    ]);
  });

  testUnless(
    whyNoRedis() ?? whyNoRoot,
    'serve a request on IPv6 alone, with `[fd00::5]:5432` in the Secret, and book it',
    async () => {
      const setUp = `ip -6 address add fd00::5/128 dev lo nodad && ${NETWORKS['IPv6 alone']}`;
      const program = join(import.meta.dirname, 'serve-on-ipv6.ts');
      const { code, stdout, stderr } = await inNetwork(
        setUp,
        [process.execPath, program, join(folder, 'node/gateway.mjs')],
        [],
      );
      expect(`${code} ${stdout.trim()} ${stderr}`).toBe('0 {"status":200,"booked":[true]} ');
    },
  );

  const NAME_SERVERS = [
    ['IPv4 alone', '127.0.0.1'],
    ['IPv6 alone', '::1'],
    ['both', '::1'],
  ] as const;

  test.each(NAME_SERVERS)('find a name by its search domain, on %s by the name server %s', async (network, address) => {
    const conf = join(folder, 'resolv.conf');
    writeFileSync(conf, `search cluster.local\nnameserver ${address}\noptions ndots:5\n`);
    const command = [process.execPath, join(import.meta.dirname, 'find-by-name.ts'), 'postgres.team.svc', address];
    const { code, stdout, stderr } = await inNetwork(
      `${NETWORKS[network]} && mount --bind ${conf} /etc/resolv.conf`,
      command,
    );
    expect(`${code} ${stdout.trim()} ${stderr}`).toBe(`0 ${address} `);
  });
});
