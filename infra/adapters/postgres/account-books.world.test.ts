import { afterAll, beforeAll } from 'vitest';
import { describeAccountBooks } from '#core/ports/account-books.promises.ts';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { type SharedPostgres, sharedPostgres } from '../../../test/shared-servers.ts';
import { createDatabase, type Database } from './database.ts';

const random = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count));
let server: SharedPostgres;
const databases: Database[] = [];

beforeAll(async () => {
  server = await sharedPostgres();
});

afterAll(async () => {
  await Promise.all(databases.map((database) => database.close()));
});

describeAccountBooks('PostgreSQL', async () => {
  const database = createDatabase(await server.migratedDatabase(), { log: createMemoryLog() });
  databases.push(database);
  return {
    books: database.accountBooks('instance-1', random),
    epochs: database.epochs('instance-1'),
    registry: database,
  };
});
