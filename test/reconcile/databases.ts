// Which databases does reconcile find in a test? One for each name, that can refuse, fail, and lose an answer.
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { LedgerReader, LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Policies } from '#core/ports/policy.ts';
import type { Registry } from '#core/ports/registry.ts';
import { createMemoryLedgerRows } from '../doubles/ledger-rows.ts';
import { createMemoryRegistry } from '../doubles/registry.ts';

export interface Database extends Registry, LedgerReader {
  policies(instanceUid: string): Policies;
  /** Books entries as a gateway does. */
  book(instanceUid: string, entries: ReadonlyArray<LedgerRow>): Promise<unknown>;
}

// biome-ignore lint/suspicious/noConfusingVoidType: most say nothing
export type LossResult = 'lost' | void;

/** Calls that only read. */
export const READS: ReadonlyArray<string> = [
  'claims',
  'claimsOf',
  'namespaceClaims',
  'instance',
  'openInstances',
  'sums',
  'find',
];

export interface DatabasesDependencies {
  /** Absent: in memory. */
  readonly openDatabase: ((dbname: string) => Database) | undefined;
  readonly clock: Clock;
  /** Before each call of a guarded one: throw to fail it; `lost`: it happens, and its answer never arrives. */
  readonly before: (method: string) => LossResult | Promise<LossResult>;
}

export function createDatabases({ openDatabase, clock, before }: DatabasesDependencies) {
  const databases = new Map<string, Database>();
  const refused = new Set<string>();
  const inMemory = (): Database => {
    const ledgerRows = createMemoryLedgerRows();
    const book = async (_: string, entries: ReadonlyArray<LedgerRow>) => ledgerRows.insert(entries);
    return { ...ledgerRows, book, ...createMemoryRegistry({ clock, recount: ledgerRows.recount }) };
  };
  /** As its owner sees it. */
  const open = (dbname: string): Database => {
    const database = databases.get(dbname) ?? openDatabase?.(dbname) ?? inMemory();
    databases.set(dbname, database);
    return database;
  };
  /** As whoever asks it over a network. */
  const guarded = (dbname: string): Database =>
    new Proxy(open(dbname), {
      get: (target, method: keyof Database) => {
        const call = target[method] as (...args: unknown[]) => unknown;
        return async (...args: unknown[]) => {
          if (refused.has(dbname))
            throw new DatabaseUnreachable(`PostgreSQL at db:5432/${dbname} refused the connection`);
          const fate = await before(String(method));
          const answer = await call(...args);
          if (fate === 'lost') throw new DatabaseUnreachable(`PostgreSQL at db:5432/${dbname} closed the connection`);
          return answer;
        };
      },
    });
  /** The same, without the claims of namespaces, which most tests are not about. */
  const ofObjects = (dbname: string): Database => {
    const database = open(dbname);
    const claims: Database['claims'] = async (uid) =>
      (await database.claims(uid)).filter(({ kind }) => kind !== 'namespace');
    return new Proxy(database, {
      get: (target, method) => (method === 'claims' ? claims : Reflect.get(target, method)),
    });
  };
  const refuse = (isRefused: boolean, dbname: string) => {
    if (isRefused) refused.add(dbname);
    else refused.delete(dbname);
  };
  return { open, ofObjects, guarded, refuse };
}
