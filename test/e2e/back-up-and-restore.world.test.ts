// The commands of docs/guides/back-up-and-restore.md: a cluster is lost, and its objects return with keys and spend.
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { documented } from '../platforms/documented.ts';
import { CLUSTERS } from '../support/clusters.ts';
import { eventually } from '../support/eventually.ts';
import { describeSideBySide } from '../support/side-by-side.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PAGE = 'docs/guides/back-up-and-restore.md';
const block = (name: string) => documented(PAGE, name);
/** Where a stack has the objects of its cluster. */
const OBJECTS = { embedded: ['cluster.db', 'cluster.db-wal', 'cluster.db-shm'], real: ['envtest'] } as const;

describeSideBySide(CLUSTERS, 'back up and restore', ({ name }) => {
  test('a cluster that was lost returns from its backup: the same key values, and the spend of before', async () => {
    const folder = temporaryFolder();
    const type = async (stack: TestStack, text: string) => {
      const env = { ...process.env, KUBECONFIG: stack.endpoints.kubeconfig };
      return (await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', text], { cwd: folder, env })).stdout;
    };
    const spendOf = (stack: TestStack) =>
      stack.ok('get', 'virtualkey', 'example-service', '-o', 'jsonpath={.status.currentSpend}');
    const options = name === 'real' ? ['--cluster', 'envtest'] : [];

    const before = await startTestStack(options);
    const value = await before.ok('get', 'secret', 'example-service-key', '-o', 'jsonpath={.data.key}');
    await (await before.client()).chat.completions.create({
      model: 'sample-small',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    const spend = await eventually(
      async () => {
        await before.resync();
        return spendOf(before);
      },
      (amount) => Number(amount) > 0,
    );
    await before.ok('label', 'namespace', 'default', 'llm=allowed');
    for (const step of ['back up', 'back up own Secrets']) await type(before, block(step));
    expect(await before.stop()).toBe(0);
    for (const path of OBJECTS[name]) rmSync(join(before.folder, path), { recursive: true, force: true });

    const after = await before.again(['--empty', ...options]);
    expect(await after.ok('get', 'virtualkeys', '-A')).toBe('');
    // The garbage collector needs half a minute to learn our kinds. From then on it deletes what only an object owns that
    // is gone.
    await after.ok('create', 'configmap', 'owned', '-o', 'name');
    const owner = { apiVersion: 'auth.gateway-operator.dev/v1alpha1', kind: 'VirtualKey', name: 'gone', uid: 'gone' };
    const owned = JSON.stringify({ metadata: { ownerReferences: [owner] } });
    await after.ok('patch', 'configmap', 'owned', '--type=merge', '-p', owned);
    await eventually(
      () => after.kubectl(['get', 'configmap', 'owned']),
      ({ stderr }) => stderr.includes('NotFound'),
      120_000,
    );
    for (const step of ['restore Secrets', 'restore instances', 'restore the others']) await type(after, block(step));
    expect(await after.ok('get', 'secret', 'example-service-key', '-o', 'jsonpath={.data.key}')).toBe(value);
    expect(await spendOf(after)).toBe(spend);
    expect(await after.ok('get', 'namespace', 'default', '-o', 'jsonpath={.metadata.labels.llm}')).toBe('allowed');
    // The key that a User had made is the User's own again.
    const uid = await after.ok('get', 'user.auth.gateway-operator.dev', 'alice', '-o', 'jsonpath={.metadata.uid}');
    const owners = ['get', 'virtualkey', 'alice', '-o', 'jsonpath={.metadata.ownerReferences[*].uid}'];
    expect(await after.ok(...owners)).toBe(uid);
    expect(await after.stop()).toBe(0);
  });
});
