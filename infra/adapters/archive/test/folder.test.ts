// The archive in a folder: what every archive promises, and what a person reads if the folder cannot be used.
import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { describeArchive } from '#core/ports/test/archive.promises.ts';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { createFolder } from '../folder.ts';

const folder = temporaryFolder();
describeArchive('a folder', () => createFolder(pathToFileURL(join(folder, 'with blank')).href));

test('a file that could not be written leaves nothing behind, and the message names the folder and what to check', async () => {
  const taken = temporaryFolder();
  writeFileSync(join(taken, 'file'), '');
  const { href: url } = pathToFileURL(join(taken, 'file'));
  const written = createFolder(url).write('a/1.parquet', new Uint8Array(1), new AbortController().signal);
  await expect(written).rejects.toThrow(
    new RegExp(`^${url}: E.*\\. Check that the folder is a volume of the reconciler's Pod, writable and not full$`),
  );
  expect(globSync('**/*', { cwd: taken })).toEqual(['file']);
});
