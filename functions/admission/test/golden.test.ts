// Answers to reviews that a kube-apiserver 1.34 sent, byte for byte as in the golden files.
// `npm run golden` writes the answers again; read the difference before you commit it.
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { createWorld, depsOf, post } from '../../../test/admission/fixtures.ts';

const folder = join(import.meta.dirname, 'golden');
const names = globSync('*.review.json', { cwd: folder }).map((name) => basename(name, '.review.json'));
const { cluster } = await createWorld();

test('there are reviews to answer', () => expect(names.length).toBeGreaterThan(10));

test.each(names)('%s', async (name) => {
  const { path, review } = JSON.parse(readFileSync(join(folder, `${name}.review.json`), 'utf8'));
  const reply = await post(depsOf(cluster), path, review);
  const answer = (await reply.json()) as { response: { patch?: string } };
  // The patch is decoded, so that a person can read it.
  const { patch } = answer.response;
  const readable =
    patch === undefined ? answer : { ...answer, patch: JSON.parse(Buffer.from(patch, 'base64').toString()) };
  await expect(`${JSON.stringify({ status: reply.status, ...readable }, null, 2)}\n`).toMatchFileSnapshot(
    join(folder, `${name}.golden.json`),
  );
});
