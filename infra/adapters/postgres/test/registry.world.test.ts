import { afterAll, beforeAll } from 'vitest';
import { describeRegistry } from '#core/ports/test/registry.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';

let server: SharedPostgres;
const databases: Database[] = [];

beforeAll(async () => {
  server = await sharedPostgres();
});

afterAll(async () => {
  await Promise.all(databases.map((database) => database.close()));
});

describeRegistry('PostgreSQL', async () => {
  const database = createDatabase(await server.migratedDatabase(), { log: createMemoryLog() });
  databases.push(database);
  return { registry: database, policies: database.policies };
});
