// What does a sweep over a hundred thousand keys cost: when nothing changed, when a thousand have spent, when a thousand are new?
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createIds } from '#adapters/ids.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import { startPostgres } from '../postgres.ts';
import {
  gatewayInstances,
  makeInstance,
  makeKey,
  makeSecret,
  makeSecrets,
  RESOURCES,
  virtualKeys,
} from '../reconcile/bed.ts';
import { next } from './pinned.ts';
import { type Counted, type StandIn, startStandIn } from './sweep/api-server.ts';
import type { Swept } from './sweep/child.ts';
import { table } from './table.ts';

const KEYS = Number(process.env.BENCH_KEYS ?? 100_000);
const SOME = Math.min(1000, KEYS / 10);
const NAMESPACES = 50;
/** As in a container with a limit of 512 MiB. */
const HEAP = process.env.BENCH_HEAP ?? '320';

interface Row {
  readonly name: string;
  readonly swept: Swept;
  readonly counted: Counted;
}

export async function benchSweep(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-bench-'));
  const [postgres, api] = [await startPostgres(), await startStandIn()];
  let child: ChildProcess | undefined;
  try {
    writeFileSync(join(folder, 'token'), 'bench');
    writeFileSync(join(folder, 'ca.crt'), '');
    const connection = await postgres.createDatabase();
    await fill(api, connection);
    const rows: Row[] = [];
    const sweep = async (name: string) => {
      const swept = await askToSweep(child as ChildProcess);
      rows.push({ name, swept, counted: api.counted() });
      process.stdout.write(`${line(rows.at(-1) as Row).join(' · ')}\n`);
    };
    const restart = async () => {
      child?.kill();
      child = fork(join(import.meta.dirname, 'sweep/child.ts'), [api.url, folder], {
        execArgv: [`--max-old-space-size=${HEAP}`],
      });
      await next(child);
    };
    await restart();
    await sweep(`${KEYS} new keys`);
    await restart();
    await sweep('nothing changed, first of a process');
    await sweep('nothing changed');
    await spend(connection);
    await sweep(`${SOME} of them have spent`);
    for (let index = 0; index < SOME; index += 1) putKey(api, KEYS + index);
    await sweep(`${SOME} more keys are new`);
    await restart();
    await sweep('nothing changed, first of a process');
    return report(rows);
  } finally {
    child?.kill();
    await api.stop();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function askToSweep(child: ChildProcess): Promise<Swept> {
  child.send('sweep');
  return next<Swept>(child);
}

type Connection = Awaited<ReturnType<Awaited<ReturnType<typeof startPostgres>>['createDatabase']>>;

async function fill(api: StandIn, { host, port, username, password, dbname }: Connection): Promise<void> {
  const database = makeSecret('db', { host: `${host}:${port}`, username, password, dbname });
  for (const secret of [...makeSecrets().slice(1), database]) api.put(RESOURCES.secrets, secret);
  api.put(gatewayInstances, makeInstance());
  for (let index = 0; index < KEYS; index += 1) putKey(api, index);
}

function putKey(api: StandIn, index: number): void {
  const key = makeKey({ models: ['small', 'free'] }, `service-${index}`, `team-${index % NAMESPACES}`);
  // What kubectl apply leaves behind.
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': `${JSON.stringify(key)}\n` };
  api.put(virtualKeys, { ...key, metadata: { ...key.metadata, annotations } } as KubeObject);
}

async function spend(connection: Connection): Promise<void> {
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const { host, port, username, password, dbname } = connection;
  const pool = new pg.Pool({ host, port, user: username, password, database: dbname });
  const { rows } = await pool.query<{ scope_id: string; uid: string; anchor: string }>(
    `select scope_id, instance_uid as uid, (extract(epoch from created_at) * 1000)::bigint as anchor
     from gateway_operator.claim order by alias limit ${SOME}`,
  );
  await pool.end();
  const database = createDatabase(connection, { log });
  const ids = createIds({ clock: Date, random: (count) => crypto.getRandomValues(new Uint8Array(count)) });
  await database.book(
    rows[0]?.uid ?? '',
    rows.map(({ scope_id: scopeId, anchor }) => ({
      id: ids.next(),
      kind: 'settled' as const,
      charges: [{ scopeId, window: { start: Number(anchor), end: Number(anchor) + 30 * 86_400_000 } }],
      cost: 1_234_567n,
      tokens: { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 },
      model: 'small',
      identifier: 'small',
      estimated: false,
      settledAt: Date.now(),
    })),
  );
  await database.close();
}

const writes = ({ calls }: Counted) =>
  Object.entries(calls).reduce((sum, [name, count]) => sum + (/^(get|list) /.test(name) ? 0 : count), 0);

function line({ name, swept, counted }: Row): string[] {
  const failed = Object.entries(swept.report.failed);
  return [
    name,
    (swept.millis / 1000).toFixed(1),
    (swept.cpuMillis / 1000).toFixed(1),
    swept.peak.toFixed(0),
    String(swept.statements),
    String(
      Object.entries(counted.calls).reduce((sum, [call, count]) => sum + (call.startsWith('list') ? count : 0), 0),
    ),
    String(counted.calls['get secrets'] ?? 0),
    String(writes(counted)),
    failed.length === 0 ? '' : JSON.stringify(failed),
  ];
}

function report(rows: ReadonlyArray<Row>): string {
  const head = ['sweep', 's', 'CPU s', 'peak MiB', 'SQL', 'list pages', 'Secrets read', 'writes', 'failed'];
  return `Sweeps over ${KEYS} keys of one instance, old space limited to ${HEAP} MiB.\n\n${table(head, rows.map(line))}`;
}
