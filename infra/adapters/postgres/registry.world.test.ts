import { afterAll, beforeAll } from 'vitest';
import { describeRegistry } from '#core/ports/registry.promises.ts';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { startPostgres, type TestPostgres } from '../../../test/postgres.ts';
import { createDatabase, type Database } from './database.ts';

let server: TestPostgres;
const databases: Database[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await Promise.all(databases.map((database) => database.close()));
  await server.stop();
});

describeRegistry('PostgreSQL', async () => {
  const database = createDatabase(await server.createDatabase(), { log: createMemoryLog() });
  databases.push(database);
  await database.migrate();
  return { registry: database, policies: database.policies };
});
