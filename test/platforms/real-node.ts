// A real node with the image, and with PostgreSQL, Redis and the sample upstream as Services beside it.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { createSampleUpstream, type SampleUpstream } from '../../infra/platforms/local/sample-upstream/server.ts';
import { RELEASE_IMAGE } from '../../infra/runtime/config/release.ts';
import { run } from '../support/child.ts';
import { startRedis } from '../support/redis.ts';
import { sharedPostgres } from '../support/shared-servers.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { deskIn } from './documented.ts';
import { writeBase } from './image.ts';
import { STORE_PASSWORD, UPSTREAM_KEY } from './node-manifests.ts';
import { type Rig, startRig } from './rig.ts';

export interface RealNode {
  readonly rig: Rig;
  /** Folders: a temporary one, and one that looks like the repository to the commands of a page. */
  readonly folder: string;
  readonly desk: string;
  readonly database: DatabaseConnection;
  readonly upstream: SampleUpstream;
  /** Keeps a measurement, printed at the end: no test depends on it. */
  note(line: string): void;
  /** The value of a key's Secret. */
  keyIn(namespace: string, secret: string): Promise<string>;
  /** Entries in PostgreSQL by kind, costs in nano-dollars. */
  booked(): Promise<BookedSpend>;
  stop(): Promise<void>;
}

export interface BookedSpend {
  readonly count: number;
  readonly cost: number;
  readonly settled: number;
}

/** Servers are published in these namespaces, which are made. */
const NAMESPACES = ['default', 'team'];
const ENTRIES = `select count(*), coalesce(sum(cost), 0) as cost, count(*) filter (where kind = 'settled') as settled
  from gateway_operator.ledger_row`;

export async function startRealNode(): Promise<RealNode> {
  const folder = temporaryFolder();
  const [rig, postgres, redis, upstream] = await Promise.all([
    startRig(),
    sharedPostgres(),
    startRedis(['--requirepass', STORE_PASSWORD], STORE_PASSWORD),
    createSampleUpstream({ port: 0, key: UPSTREAM_KEY }),
  ]);
  const database = await postgres.createDatabase();
  await rig.importImage(await buildImage(folder));
  await rig.kubectl('create namespace team');
  await rig.publish('postgres', 5432, database.port, NAMESPACES);
  await rig.publish('redis', 6379, redis.connection.port, NAMESPACES);
  await rig.publish('upstream', 80, Number(new URL(upstream.url).port), NAMESPACES);
  const notes: string[] = [];
  return {
    rig,
    folder,
    desk: deskIn(folder),
    database,
    upstream,
    note: (line) => void notes.push(line),
    async keyIn(namespace, secret) {
      const value = await rig.kubectl(`-n ${namespace} get secret ${secret} -o jsonpath={.data.key}`);
      return Buffer.from(value, 'base64').toString();
    },
    async booked() {
      const [row] = await postgres.query<{ count: string; cost: string; settled: string }>(database, ENTRIES);
      return { count: Number(row?.count), cost: Number(row?.cost), settled: Number(row?.settled) };
    },
    async stop() {
      process.stdout.write(notes.map((line) => `  seen: ${line}\n`).join(''));
      await Promise.all([rig.stop(), upstream.close(), redis.stop()]);
    },
  };
}

/** The image of the sources in a folder, as an archive that containerd imports. */
export async function buildImage(folder: string, name = RELEASE_IMAGE, sources?: string): Promise<string> {
  const [base, layout, archive] = ['base', 'layout', 'image.tar'].map((part) => join(folder, part)) as Paths;
  mkdirSync(base);
  writeBase(base);
  const main = join(sources ?? join(import.meta.dirname, '../..'), 'infra/packaging/image/main.ts');
  for (const [command, args] of [
    [process.execPath, [main, '--oci', layout, '--base', base, '--name', name]],
    ['tar', ['-C', layout, '-cf', archive, '.']],
  ] as const) {
    const { code, stderr } = await run(command, args);
    if (code !== 0) throw new Error(stderr);
  }
  return archive;
}

/** The last release; before the first one, the commit before. */
const BEFORE = `git describe --tags --abbrev=0 --match 'v*' 2> /dev/null || git rev-parse --short HEAD~1`;

/** The image of an earlier version, built with the packages of its own lock file, and a folder with its manifests. */
export async function buildBefore(folder: string) {
  const desk = join(folder, 'before');
  mkdirSync(desk);
  const script = `set -e
    commit=\${TEST_PODS_BEFORE:-$(${BEFORE})}
    git archive $commit | tar -x -C ${desk}
    if cmp -s package-lock.json ${desk}/package-lock.json; then ln -s $PWD/node_modules ${desk}; else
      npm ci --prefix ${desk} --ignore-scripts --no-audit --no-fund >&2
    fi
    echo $commit`;
  const { code, stdout, stderr } = await run('bash', ['-c', script]);
  if (code !== 0) throw new Error(stderr);
  const image = `${RELEASE_IMAGE}-before`;
  const parts = join(folder, 'image-before');
  mkdirSync(parts);
  return { desk, image, commit: stdout.trim(), archive: await buildImage(parts, image, desk) };
}

type Paths = [base: string, layout: string, archive: string];
