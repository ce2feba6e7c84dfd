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
  sha256,
  virtualKeys,
} from '../reconcile/bed.ts';
import { next } from './pinned.ts';
import { type Counted, type StandIn, startStandIn } from './sweep/api-server.ts';
import type { Swept } from './sweep/child.ts';
import { table } from './table.ts';

const KEYS = Number(process.env.BENCH_KEYS ?? 100_000);
const SOME = Math.min(1000, KEYS / 10);
const NAMESPACES = 50;
const BATCH = 10_000;
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
    await sweep(`${SOME} keys are new, and there are no others`);
    await multiply(api, connection);
    api.counted();
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
  for (let index = 0; index < SOME; index += 1) putKey(api, index);
}

function putKey(api: StandIn, index: number): void {
  const key = makeKey({ models: ['small', 'free'] }, `service-${index}`, `team-${index % NAMESPACES}`);
  // What kubectl apply leaves behind.
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': `${JSON.stringify(key)}\n` };
  api.put(virtualKeys, { ...key, metadata: { ...key.metadata, annotations } } as KubeObject);
}

/** Making a hundred thousand keys one by one would take the night: they are copies of the first, as if each had been made. */
async function multiply(api: StandIn, { host, port, username, password, dbname }: Connection): Promise<void> {
  const template = api.get(virtualKeys, 'team-0', 'service-0');
  const text = JSON.stringify(template);
  const secret = JSON.stringify(api.get(RESOURCES.secrets, 'team-0', 'service-0-key'));
  const { keyValue, keyID } = template.status as { keyValue: string; keyID: string };
  const pool = new pg.Pool({ host, port, user: username, password, database: dbname });
  for (let from = SOME; from < KEYS; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, KEYS - from) }, (_, offset) => {
      const index = from + offset;
      const [name, namespace, value] = [`service-${index}`, `team-${index % NAMESPACES}`, `sk-copy-${index}`];
      const [uid, scopeId, hash] = [crypto.randomUUID(), crypto.randomUUID(), sha256(value)];
      const copyOf = (original: string) => {
        const copied = original
          .replaceAll(keyValue, value)
          .replaceAll(btoa(keyValue), btoa(value))
          .replaceAll(keyID, hash)
          .replaceAll(template.metadata.uid ?? '', uid)
          .replaceAll('service-0', name)
          .replaceAll('team-0', namespace);
        return JSON.parse(copied) as KubeObject;
      };
      api.put(virtualKeys, copyOf(text));
      api.put(RESOURCES.secrets, copyOf(secret));
      return { name, namespace, uid, scopeId, hash };
    });
    const column = (of: keyof (typeof batch)[number]) => batch.map((row) => row[of]);
    await pool.query(COPY, [column('name'), column('namespace'), column('uid'), column('scopeId'), column('hash')]);
  }
  await pool.query('analyze');
  await pool.end();
}

const COPY = `
with copy as (select * from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[]) as c (name, namespace, uid, scope_id, hash)),
template as (select * from gateway_operator.claim where alias = 'service-0'),
claims as (
  insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, created_at, policy, charges)
  select c.scope_id, t.instance_uid, t.kind, c.name, c.uid, c.namespace, c.name, t.created_at,
    t.policy || jsonb_build_object('scopeId', c.scope_id, 'name', c.name, 'object', jsonb_build_object('namespace', c.namespace, 'name', c.name)),
    t.charges
  from copy c cross join template t returning scope_id)
insert into gateway_operator.key_value (scope_id, hash) select c.scope_id, c.hash from copy c join claims using (scope_id)`;

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
