// How does a database get our schema, whoever else tries at the same time?
import { hasSchema, hasTable } from './catalog.ts';
import { BACKGROUND_LIMIT } from './limits.ts';
import { MIGRATIONS, type Migration } from './migrations.ts';
import type { Query, Session } from './session.ts';

/** Any number that nobody else uses: what all our processes lock while they migrate. */
const LOCK = 7_203_418_865;

/** Brings the schema to the newest of `migrations`, one transaction per version. A newer schema is left alone. */
export async function migrate(
  session: Session,
  migrations: ReadonlyArray<Migration> = MIGRATIONS,
): Promise<{ readonly from: number; readonly to: number }> {
  const from = await session.run(BACKGROUND_LIMIT, readVersion);
  let to = from;
  for (const { version, limit = BACKGROUND_LIMIT } of migrations) {
    if (version > to) to = await session.transaction(limit, (query) => step(query, migrations));
  }
  return { from, to };
}

/** Applies the next version that is missing once the lock is ours; answers where the schema now stands. */
async function step(query: Query, migrations: ReadonlyArray<Migration>): Promise<number> {
  await query(`set local lock_timeout = ${BACKGROUND_LIMIT - 500}`);
  await query(`select pg_advisory_xact_lock(${LOCK})`);
  const version = await readVersion(query);
  const next = migrations.find((migration) => migration.version > version);
  if (next === undefined) return version;
  if (version === 0) {
    // `create schema if not exists` asks for the right to create one even where it is there.
    if (!(await hasSchema(query))) await query('create schema gateway_operator');
    await query(`create table if not exists gateway_operator.migration (
      version integer primary key, name text not null, applied_at timestamptz(3) not null default now())`);
  }
  await query(next.sql);
  await query('insert into gateway_operator.migration (version, name) values ($1, $2)', [next.version, next.name]);
  return next.version;
}

async function readVersion(query: Query): Promise<number> {
  if (!(await hasTable(query, 'migration'))) return 0;
  const [row] = await query<{ version: number }>(
    'select coalesce(max(version), 0) as version from gateway_operator.migration',
  );
  return row?.version ?? 0;
}
