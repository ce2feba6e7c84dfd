// One PostgreSQL: registry, books and policies over one pool.
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Epochs } from '#core/ports/epochs.ts';
import type { Policies } from '#core/ports/policy.ts';
import type { Registry } from '#core/ports/registry.ts';
import { createBooks } from './books.ts';
import { createClaims } from './claims.ts';
import { createEpochs } from './epochs.ts';
import { createInstances } from './instances.ts';
import { createMonths } from './months.ts';
import { createPolicies } from './policies.ts';
import type { PoolDependencies } from './pool.ts';
import { ensureSchema } from './schema.ts';
import { createScopeWrites } from './scope-writes.ts';
import { createSession } from './session.ts';

export interface Database extends Registry, Books {
  /** The gateway's view of one instance's keys. */
  policies(instanceUid: string): Policies;
  epochs(instanceUid: string): Epochs;
  /** Drops whole months of entries, but for this one and so many before it. Sums stay. Answers which. */
  dropMonths(kept: number): Promise<ReadonlyArray<string>>;
  close(): Promise<void>;
}

/**
 * Everything lives in the schema `gateway_operator` of the given database (PostgreSQL 14 or later), which `migrate` makes. Nothing is dialled
 * until something is asked. A database that refuses throws DatabaseUnreachable at once, one that keeps silent after
 * 1.8 s where a request asks (`find`, `sums`) and 5 s elsewhere; the next call tries anew. TLS: see `createSession`.
 */
export function createDatabase(connection: DatabaseConnection, deps: PoolDependencies): Database {
  const session = createSession(connection, deps);
  const months = createMonths(session);
  return {
    migrate: async () => {
      const versions = await ensureSchema(session);
      await months.ahead();
      return versions;
    },
    ...createInstances(session),
    ...createClaims(session),
    ...createScopeWrites(session),
    ...createBooks({ session, months, log: deps.log }),
    policies: (instanceUid) => createPolicies(session, instanceUid),
    epochs: (instanceUid) => createEpochs(session, instanceUid),
    dropMonths: months.drop,
    close: session.close,
  };
}
