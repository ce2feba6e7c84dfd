import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { readStart } from '../mounts.ts';

const DATABASE = { host: 'db.example', username: 'me', password: 'secret', dbname: 'gateway' };

/** What is wrong with a database or counter store that is mounted as these files; nothing else is there. */
function problemWith(files: Readonly<Record<string, string>>, part: 'database' | 'store' = 'database') {
  const folder = temporaryFolder();
  const at = (name: string) => join(folder, name);
  mkdirSync(at(part));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(at(part), name), text);
  try {
    readStart({
      SNAPSHOT_FILE: at('snapshot'),
      DATABASE_DIR: at('database'),
      STORE_DIR: at('store'),
      JOURNAL_DIR: at('journal'),
    });
  } catch (error) {
    return String(error)
      .split('\n')
      .find((line) => line.includes(`${part.toUpperCase()}_DIR`));
  }
  return undefined;
}

test('a gateway speaks TLS to its database as the mounted entries say', () => {
  expect(problemWith(DATABASE)).toBeUndefined();
  expect(problemWith({ ...DATABASE, sslmode: 'verify-full', sslrootcert: 'system' })).toBeUndefined();
  expect(problemWith({ ...DATABASE, sslmode: 'verify-full' })).toContain('sslmode needs certificates to verify with');
  expect(problemWith({ ...DATABASE, sslmode: 'sometimes' })).toContain('sslmode must be one of');
});

test('a gateway needs no port of its counter store if every host has one', () => {
  expect(problemWith({ host: 'a:26379,b:26379', password: '' }, 'store')).toBeUndefined();
  expect(problemWith({ host: 'a:26379,b', password: '' }, 'store')).toContain('port is missing');
});
