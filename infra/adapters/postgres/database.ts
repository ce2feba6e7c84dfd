// One PostgreSQL: registry, ledger rows and policies over one pool.
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { EpochUser } from '#core/ports/epochs.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Random } from '#core/ports/platform.ts';
import type { WorkMemory } from '../backends/reply-memory.ts';
import { createClaims } from './claims.ts';
import { createEpochs } from './epochs.ts';
import { createInstances } from './instances.ts';
import { createLedgerDatabase } from './ledger-database.ts';
import { createLedgerReader } from './ledger-reader.ts';
import { forgetOldSums } from './old-sums.ts';
import { createPartitions, type DropCheck } from './partitions.ts';
import { createPolicies } from './policies.ts';
import type { PoolDependencies } from './pool.ts';
import { forgetRetired } from './retired-claims.ts';
import { ensureSchema } from './schema.ts';
import { createScopeWrites } from './scope-writes.ts';
import { createSession, type Session } from './session.ts';
import { sumUpUsage } from './usage.ts';

export type Database = ReturnType<typeof createDatabase>;
/** The database for one piece of work, which has its own memory, and after whose end all calls reject. */
export type DatabaseWithin = ReturnType<Database['withWorkMemory']>;

interface DropOptions {
  readonly check?: DropCheck;
  readonly isOver?: () => boolean;
  /** The days for which a claim or a value stays after it was retired: fewer in tests. */
  readonly retiredDays?: number;
}

/**
 * Everything is in the schema `gateway_operator` of the database (PostgreSQL 14 or later), which `migrate` makes. The
 * first call connects. Calls throw DatabaseUnreachable: immediately if the database refuses them, after 1.8 s of
 * silence if a request waits (`find`, `sums`), else after 5 s. The next call tries again. TLS: see `openPool`.
 */
export function createDatabase(connection: DatabaseConnection, deps: PoolDependencies) {
  const session = createSession(connection, deps);
  const partitions = createPartitions(session);
  const adapters = (session: Session) => ({
    migrate: async () => {
      const versions = await ensureSchema(session);
      await partitions.ensureUpcoming();
      return versions;
    },
    ...createInstances(session),
    ...createClaims(session),
    ...createScopeWrites(session),
    ...createLedgerReader(session),
    /** The gateway's view of one instance's keys. */
    policies: (instanceUid: string) => createPolicies(session, instanceUid),
    epochs: (instanceUid: string, user: EpochUser) => createEpochs(session, instanceUid, user),
    ledgerDatabase: (instanceUid: string, random: Random) =>
      createLedgerDatabase({ session, partitions, random, log: deps.log }, instanceUid),
    /** Makes this day and the next days of ledger rows: bookings need not make them. */
    ensureDays: partitions.ensureUpcoming,
    /**
     * Sums up the usage that batches have added, and deletes usage that is too old. After the time `isOver`, the rest is
     * left to the next call.
     */
    sumUpUsage: (isOver: () => boolean = () => false) => sumUpUsage(session, isOver),
    /**
     * Drops whole days of ledger rows, except the current day and a number of days before it (`forever`: drops none);
     * returns them. `now`: the caller's clock. A day for which `check` is false stays. Then deletes sums, claims and
     * values that nothing needs; sums of current windows stay. When `isOver` returns true, the rest of this is left to
     * the next call.
     */
    dropDays: async (keptDays: number | 'forever', now: Millis, options: DropOptions = {}) => {
      const { check, isOver = () => false, ...ofRetired } = options;
      const isForever = keptDays === 'forever';
      const dropped = isForever ? [] : await partitions.drop(session, { keptDays, now, check, isOver });
      const forgetUnneeded = () => forgetRetired(session, { now, isOver, ...ofRetired });
      await forgetOldSums(session, { isForever, now, isOver, forgetUnneeded });
      return dropped;
    },
  });
  return {
    ...adapters(session),
    /** For adapters that few processes need (archived-days.ts). */
    session,
    withWorkMemory: (workMemory: WorkMemory) => adapters(session.withWorkMemory(workMemory)),
    disconnect: session.disconnect,
    close: session.close,
  };
}
