import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { eventually } from '../../../test/eventually.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { freePort } from '../state/ports.ts';
import { startPostgres } from './postgres.ts';

test('a PostgreSQL that died and cannot start says why once, and works again when what it lacked is back', async () => {
  const folder = join(temporaryFolder(), 'postgres');
  const told: string[] = [];
  const server = await startPostgres({
    folder,
    choosePort: () => freePort(0, 'next'),
    password: 'secret',
    onRestart: () => void told.push('started again'),
    onFailure: (why) => void told.push(why),
  });
  try {
    const pid = Number(readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n')[0]);
    renameSync(folder, `${folder}-elsewhere`);
    process.kill(pid, 'SIGKILL');
    await eventually(
      async () => told.length,
      (count) => count > 0,
    );
    // A second try at least.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(told).toEqual([expect.stringContaining(folder)]);
    renameSync(`${folder}-elsewhere`, folder);
    await eventually(
      async () => told.at(-1),
      (last) => last === 'started again',
    );
    const client = new pg.Client({ ...server, user: server.username, database: 'postgres' });
    await client.connect();
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await client.end();
    expect(told).toHaveLength(2);
  } finally {
    await server.stop();
  }
});
