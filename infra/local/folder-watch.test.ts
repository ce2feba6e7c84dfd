import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { type FolderWatch, watchFolder } from './folder-watch.ts';

let watching: FolderWatch | undefined;
afterEach(() => watching?.stop());

function opened(): string {
  const folder = join(temporaryFolder(), 'state');
  mkdirSync(folder);
  writeFileSync(join(folder, 'state.json'), '{}');
  watching = watchFolder(folder, 5);
  return folder;
}

const above = (folder: string) => join(folder, '..');

test.each([
  { how: 'removed', act: (folder: string) => rmSync(folder, { recursive: true }) },
  { how: 'removed with the one above it', act: (folder: string) => rmSync(above(folder), { recursive: true }) },
  { how: 'emptied', act: (folder: string) => rmSync(join(folder, 'state.json')) },
  { how: 'moved', act: (folder: string) => renameSync(folder, `${folder}-elsewhere`) },
  {
    how: 'replaced by another stack\u2019s',
    act: (folder: string) => {
      renameSync(folder, `${folder}-elsewhere`);
      mkdirSync(folder);
      writeFileSync(join(folder, 'state.json'), '{}');
    },
  },
])('a state folder that is $how is noticed', async ({ act }) => {
  const folder = opened();
  act(folder);
  await watching?.gone;
});

test('a state folder whose files are written anew is still there', async () => {
  const folder = opened();
  let isGone = false;
  void watching?.gone.then(() => {
    isGone = true;
  });
  for (let i = 0; i < 10; i += 1) {
    writeFileSync(join(folder, 'state.json.new'), `${i}`);
    renameSync(join(folder, 'state.json.new'), join(folder, 'state.json'));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(isGone).toBe(false);
});
