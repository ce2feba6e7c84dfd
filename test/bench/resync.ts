// Cost of a resync over a hundred thousand keys: nothing changed, some have spent, a thousand are new; and over ten
// thousand on a real API server.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { startPostgres } from '../support/postgres.ts';
import type { Swept } from './resync/child.ts';
import { fill, multiply, putKeys, spend } from './resync/filling.ts';
import { openDouble, openReal, type Place } from './resync/place.ts';
import { createProcess, LIMITS, type Process } from './resync/process.ts';
import { table } from './table.ts';

const KEYS = Number(process.env.BENCH_KEYS ?? 100_000);
const KEYS_ON_REAL = Math.min(KEYS, 10_000);
interface Row {
  readonly name: string;
  readonly swept: Swept;
}

export async function benchResync(): Promise<string> {
  return `Resyncs over ${KEYS} keys of one instance, Node with ${LIMITS.join(' ')}.\n\n${await onPlace(openDouble, KEYS)}`;
}

/** The table, or the reason why there is no API server. */
export async function benchRealResync(): Promise<string> {
  const why = whyNoControlPlane();
  if (why !== undefined) return `Resyncs on a real API server: not measured, ${why}.`;
  return `Resyncs over ${KEYS_ON_REAL} keys on a real API server.\n\n${await onPlace(openReal, KEYS_ON_REAL)}`;
}

/** Resyncs over `keys` VirtualKeys on a real API server, and what each takes in its etcd. */
export async function benchLargeResync(keys: number): Promise<string> {
  const why = whyNoControlPlane();
  if (why !== undefined) return `Resyncs of ${keys} VirtualKeys and bytes in etcd: not measured, ${why}.`;
  return `Resyncs over ${keys} VirtualKeys on a real API server.\n\n${await onPlace(openReal, keys)}`;
}

async function onPlace(open: () => Promise<Place>, keys: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-bench-'));
  const [postgres, place] = [await startPostgres(), await open()];
  const process = createProcess(place, folder);
  try {
    const before = await place.storedBytes?.();
    const rows = report(await series(place, keys, await postgres.createDatabase(), process));
    if (before === undefined) return rows;
    const bytes = (((await place.storedBytes?.()) ?? before) - before) / keys;
    return `${rows}\n\nA VirtualKey and its Secret take ${bytes.toFixed(0)} bytes in etcd, with the revisions that are not compacted yet.`;
  } finally {
    process.end();
    await place.stop();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Connection = Awaited<ReturnType<Awaited<ReturnType<typeof startPostgres>>['createDatabase']>>;

const UNCHANGED = 'nothing changed';
const spent = (count: number) => `${count} of them have spent`;
const isWorth = (keys: number) => (count: number) => count <= keys / 10;

async function series(place: Place, keys: number, connection: Connection, process: Process): Promise<Row[]> {
  const some = Math.min(1000, keys / 10);
  const rows: Row[] = [];
  const resync = async (name: string) => {
    rows.push({ name, swept: await process.resync() });
    globalThis.process.stdout.write(`${line(rows.at(-1) as Row).join(' · ')}\n`);
  };
  await fill(place, connection, some);
  await process.restart();
  await resync(`${some} keys are new, and there are no others`);
  await multiply(place, connection, { from: some, to: keys });
  await process.restart();
  await resync('nothing changed, first of a process');
  await resync(UNCHANGED);
  for (const count of [100, 1000, 10_000].filter(isWorth(keys))) {
    await spend(connection, count);
    await resync(spent(count));
  }
  await putKeys(place, keys, some);
  await resync(`${some} more keys are new`);
  await resync(UNCHANGED);
  return rows;
}

const HEAD = [
  'resync',
  's',
  'CPU s',
  'peak MiB',
  'SQL',
  'list pages',
  'Secrets read',
  'other reads',
  'writes',
  'failed',
];

function line({ name, swept }: Row): string[] {
  const { millis, cpuMillis, peak, statements, requests, report } = swept;
  const { pages, secrets, others, writes } = requests;
  const failed = Object.entries(report.failed);
  return [
    name,
    (millis / 1000).toFixed(1),
    (cpuMillis / 1000).toFixed(1),
    peak.toFixed(0),
    ...[statements, pages, secrets, others, writes].map(String),
    failed.length === 0 ? '' : JSON.stringify(failed),
  ];
}

function report(rows: ReadonlyArray<Row>): string {
  return `${table(HEAD, rows.map(line))}\n\n${marginal(rows)}`;
}

/** The cost of the maximum number of spending keys, beside a resync without any. */
function marginal(rows: ReadonlyArray<Row>): string {
  const cpuOf = (name: string) => rows.find((row) => row.name === name)?.swept.cpuMillis ?? Number.NaN;
  const maxKeys = [10_000, 1000, 100].find((count) => rows.some(({ name }) => name === spent(count))) ?? 0;
  const micros = ((cpuOf(spent(maxKeys)) - cpuOf(UNCHANGED)) * 1000) / maxKeys;
  return `A key that has spent costs ${micros.toFixed(0)} µs of CPU more than one that has not.`;
}
