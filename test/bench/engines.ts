// `npm run bench -- engines`: tests of Vitest's projects, on each Redis, Valkey and PgBouncer that this machine has.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NEWER_PGBOUNCER, pgBouncerProgram, whyNoPgBouncer } from '../support/pgbouncer.ts';
import { redisProgram, VALKEY, whyNoRedis } from '../support/redis.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { table } from './table.ts';

interface Run {
  readonly what: string;
  readonly files: ReadonlyArray<string>;
  /** The tests with this in their names. */
  readonly tests: RegExp;
}

const WALK = 'test/e2e/walk-engines.world.test.ts';
const FAULTS = 'test/ledger/engines.world.test.ts';

const OF_REDIS: ReadonlyArray<Run> = [
  {
    what: 'promise suites and adapter',
    files: ['counter-store', 'cluster', 'sentinel', 'login', 'restart', 'outage'].map(
      (name) => `infra/adapters/redis/test/${name}.world.test.ts`,
    ),
    tests: /^(?!with a real Valkey)/,
  },
  { what: 'walk: Cluster, Sentinels', files: [WALK], tests: /on a Redis/ },
  { what: 'faults: Cluster, Sentinels', files: [FAULTS], tests: /on a Redis/ },
];
const OF_POOLER: ReadonlyArray<Run> = [
  {
    what: 'promise suites and adapter',
    files: ['infra/adapters/postgres/test/pooler.world.test.ts'],
    tests: /^behind PgBouncer/,
  },
  { what: 'walk', files: [WALK], tests: /on PgBouncer/ },
  { what: 'faults', files: [FAULTS], tests: /on PgBouncer/ },
];
const OF_POSTGRES: ReadonlyArray<Run> = [
  { what: 'walk: promoted standby', files: [WALK], tests: /on a PostgreSQL/ },
  { what: 'faults: promoted standby', files: [FAULTS], tests: /on a PostgreSQL/ },
];

/** FAULT_SECONDS (default 60) of faults for each of FAULT_SEEDS (default 1-2). BENCH_ONLY: rows with this in them. */
export async function benchEngines(): Promise<string> {
  const redises = [whyNoRedis() === undefined ? redisProgram() : '', VALKEY, process.env.REDIS_OLDEST ?? ''];
  const poolers = [whyNoPgBouncer() === undefined ? pgBouncerProgram() : '', NEWER_PGBOUNCER];
  const failures: string[] = [];
  const rowsOf = (engine: string, variables: Readonly<Record<string, string>>, runs: ReadonlyArray<Run>): string[][] =>
    runs
      .filter(({ what }) => `${engine}, ${what}`.includes(process.env.BENCH_ONLY ?? ''))
      .map((run) => {
        const { passed, failed, skipped } = runTests(run, variables);
        failures.push(...failed.map((name) => `${engine}: ${name}`));
        process.stderr.write(`${engine}, ${run.what}: ${[`${passed} passed`, ...failed].join('\n  failed: ')}\n`);
        return [engine, run.what, `${passed}`, `${failed.length}`, `${skipped}`];
      });
  const rows = [
    ...[...new Set(redises.filter(canRun))].flatMap((program) =>
      rowsOf(versionOf(program), { REDIS_SERVER: program }, OF_REDIS),
    ),
    ...[...new Set(poolers.filter(canRun))].flatMap((program) =>
      rowsOf(versionOf(program), { PGBOUNCER: program }, OF_POOLER),
    ),
    ...rowsOf('PostgreSQL', {}, OF_POSTGRES),
  ];
  if (failures.length > 0) process.exitCode = 1;
  return [table(['engine', 'what ran', 'passed', 'failed', 'skipped'], rows), ...failures].join('\n');
}

const canRun = (program: string): boolean => program !== '' && spawnSync(program, ['--version']).status === 0;

/** Like `Redis 7.0.15`, from `Redis server v=7.0.15 sha=…`. */
function versionOf(program: string): string {
  const [, name, version] =
    /^(\w+).*?(\d+(?:\.\d+)+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' })) ?? [];
  return `${name} ${version}`;
}

interface Report {
  readonly numPassedTests: number;
  readonly testResults: ReadonlyArray<{
    readonly status: string;
    readonly message: string;
    readonly assertionResults: ReadonlyArray<{ readonly status: string; readonly fullName: string }>;
  }>;
}

function runTests({ files, tests }: Run, variables: Readonly<Record<string, string>>) {
  const file = join(temporaryFolder(), 'report.json');
  const all = { TEST_ALL: '1', TEST_CAMPAIGNS: '1', FAULT_SECONDS: process.env.FAULT_SECONDS ?? '60' };
  const words = ['run', ...files, '-t', tests.source, '--reporter=json', `--outputFile=${file}`];
  spawnSync('vitest', words, { stdio: 'ignore', env: { ...process.env, ...all, ...variables } });
  const { numPassedTests: passed, testResults } = JSON.parse(readFileSync(file, 'utf8')) as Report;
  const results = testResults.flatMap(({ assertionResults }) => assertionResults);
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  );
  const failed = results.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
  // Tests without a reason were left out by their names.
  const skipped = results.filter(
    ({ status, fullName }) => status !== 'failed' && fullName.includes('(skipped: '),
  ).length;
  return { passed, failed: [...failed, ...broken.map(({ message }) => message)], skipped };
}
