// One PostgreSQL: registry, ledger rows and policies over one pool.
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Random } from '#core/ports/platform.ts';
import type { MemoryShare } from '../backends/reply-memory.ts';
import { createClaims } from './claims.ts';
import { createEpochs } from './epochs.ts';
import { createInstances } from './instances.ts';
import { createLedgerDatabase } from './ledger-database.ts';
import { createLedgerRows } from './ledger-rows.ts';
import { createMonths } from './partitions.ts';
import { createPolicies } from './policies.ts';
import type { PoolDependencies } from './pool.ts';
import { ensureSchema } from './schema.ts';
import { createScopeWrites } from './scope-writes.ts';
import { createSession, type Session } from './session.ts';

export type Database = ReturnType<typeof createDatabase>;
/** The database for one piece of work, which takes its share of memory and ends. */
export type DatabaseWithin = ReturnType<Database['within']>;

/**
 * Everything lives in the schema `gateway_operator` of the given database (PostgreSQL 14 or later), which `migrate`
 * makes. Nothing is dialled until something is asked. A database that refuses throws DatabaseUnreachable immediately, a
 * silent one after
 * 1.8 s where a request asks (`find`, `sums`) and 5 s elsewhere; the next call tries anew. TLS: see `createSession`.
 */
export function createDatabase(connection: DatabaseConnection, deps: PoolDependencies) {
  const own = createSession(connection, deps);
  const months = createMonths(own);
  const over = (session: Session) => ({
    migrate: async () => {
      const versions = await ensureSchema(session);
      await months.ahead();
      return versions;
    },
    ...createInstances(session),
    ...createClaims(session),
    ...createScopeWrites(session),
    ...createLedgerRows(session),
    /** The gateway's view of one instance's keys. */
    policies: (instanceUid: string) => createPolicies(session, instanceUid),
    epochs: (instanceUid: string) => createEpochs(session, instanceUid),
    ledgerDatabase: (instanceUid: string, random: Random) =>
      createLedgerDatabase({ session, months, random, log: deps.log }, instanceUid),
    /** Drops whole months of entries, but for this one and so many before it. Sums stay. Answers which. */
    dropMonths: months.drop,
  });
  return { ...over(own), within: (share: MemoryShare) => over(own.within(share)), rest: own.rest, close: own.close };
}
