import { spawn } from 'node:child_process';
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { eventually } from '../../../../../test/support/eventually.ts';
import { silentLog } from '../../../../../test/support/silent-log.ts';
import { startZombie } from '../../../../../test/support/suspended-process.ts';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { keepRunning } from '../../database/database.ts';
import { type PostgresOptions, startPostgres } from '../../database/postgres.ts';
import { createChildren } from '../../state/children.ts';
import { freePort } from '../../state/ports.ts';

const optionsFor = async (folder: string): Promise<PostgresOptions> => ({
  children: createChildren(`${folder}-children`),
  folder,
  port: await freePort(0, 'any'),
  username: 'gateway',
  password: 'secret',
});

type User = { readonly uid: number; readonly gid: number };

test.each([
  { whom: 'a zombie', make: startZombie },
  { whom: 'a stranger that got its id', make: startStranger },
])('a data folder whose lock names $whom is started on', async ({ make }) => {
  const folder = join(temporaryFolder(), 'postgres');
  const options = await optionsFor(folder);
  const first = await startPostgres(options);
  const lock = join(folder, 'postmaster.pid');
  const text = readFileSync(lock, 'utf8');
  await first.stop();
  const { uid, gid } = statSync(folder);
  const { pid } = await make({ uid, gid });
  writeFileSync(lock, text.replace(/^\d+/, String(pid)));
  const second = await startPostgres(options);
  await second.stop();
});

/** A process of this user that is no PostgreSQL. */
async function startStranger(user: User): Promise<{ pid: number }> {
  const { pid = 0 } = spawn('sleep', ['60'], { ...user, cwd: '/', stdio: 'ignore' });
  return { pid };
}

test('a PostgreSQL that died and cannot start says why once, and works again when what it lacked is back', async () => {
  const folder = join(temporaryFolder(), 'postgres');
  const reports: string[] = [];
  const server = await startPostgres(await optionsFor(folder));
  const stop = keepRunning(server, {
    ...silentLog,
    warn: (message) => void reports.push(message),
    error: (_, fields) => void reports.push(`${fields?.why}`),
  });
  try {
    renameSync(folder, `${folder}-elsewhere`);
    process.kill(server.pid(), 'SIGKILL');
    await eventually(
      async () => reports.length,
      (count) => count > 0,
    );
    // A second try at least.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(reports).toEqual([expect.stringContaining(folder)]);
    renameSync(`${folder}-elsewhere`, folder);
    await eventually(
      async () => reports.at(-1),
      (last) => last?.endsWith('started again') === true,
    );
    const client = new pg.Client({ ...server.connection, user: server.connection.username, database: 'postgres' });
    await client.connect();
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await client.end();
    expect(reports).toHaveLength(2);
  } finally {
    await stop();
  }
});
