// Which writes an edit of each field of each kind causes, which writes its clearing causes, and that no further writes
// follow.
// The results are in golden/fields.golden.txt, one line for each edit: read the difference before you commit it.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import { fieldsOf } from '#crds/generators/reference-page.ts';
import { gatewayInstances, type Kind, type KindName, kinds, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';
import { EDITS, type Spec } from './edits.fixture.ts';

const EDITED: Readonly<Record<KindName, readonly [kind: Resource, name: string]>> = {
  GatewayInstance: [gatewayInstances, 'main'],
  VirtualKey: [virtualKeys, 'chat'],
  User: [users, 'alice'],
  Team: [teams, 'research'],
};

/** Fields without fields of their own. */
function leavesOf(kind: Kind): readonly string[] {
  const paths = fieldsOf(kind, 'spec').map(({ path }) => path.slice('spec.'.length));
  const contains = (path: string, other: string) =>
    other.startsWith(path) && /^(\[\]|\{\})?\./.test(other.slice(path.length));
  return paths.filter((path) => !paths.some((other) => contains(path, other)));
}

test('edits.fixture.ts has an edit for each field', () => {
  for (const kind of kinds) {
    const leaves = leavesOf(kind);
    expect(
      leaves.filter((path) => !Object.hasOwn(EDITS[kind.kind], path)),
      `${kind.kind}: edit these here`,
    ).toEqual([]);
    expect(
      Object.keys(EDITS[kind.kind]).filter((path) => !leaves.includes(path)),
      'no fields',
    ).toEqual([]);
  }
});

const namespace: KubeObject = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'default', labels: { team: 'a' } },
};
const database = { host: 'db', username: 'gateway', password: 'x', dbname: 'gateway' };
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----';
const PRIVATE_KEY = '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----';
const store = { host: 'memory', port: '6379', password: '' };
const twice = (data: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(data).flatMap(([name, value]) => [
      [name, value],
      [`${name}-2`, value],
    ]),
  );

async function converged(): Promise<Harness> {
  const harness = createHarness();
  const upstream = { apiKey: 'sk-upstream', apiBase: 'http://upstream.test/v1' };
  await harness.apply(namespace, ...makeSecrets());
  await harness.apply(
    makeSecret('db', {
      ...{ ...twice(database), 'host-2': 'moved', 'port-2': '7777', 'dbname-2': 'elsewhere' },
      ...{ 'sslmode-2': 'require', 'system-2': 'system' },
      ...{ 'cert-2': CERTIFICATE, 'key-2': PRIVATE_KEY },
    }),
    makeSecret('db-2', { ...database, host: 'moved' }),
    makeSecret('store', twice(store)),
    makeSecret('store-2', { ...store, host: 'redis.test' }),
    makeSecret('store-3', {
      ...{ ...store, host: 'rediss://redis.test', username: 'gateway' },
      ...{ ca: CERTIFICATE, clientCertificate: CERTIFICATE, clientKey: PRIVATE_KEY },
      ...{ sentinelMaster: 'main', sentinelPassword: 'sentinel-pw' },
    }),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'seven' }, data: { seven: '7' } },
    makeSecret('openai-2', upstream),
    makeInstance(),
    makeInstance({}, 'second'),
    makeTeam(),
    makeUser(),
    makeUser({ autoCreateKey: false, userEmail: 'bob@example.com' }, 'bob'),
    makeKey(),
  );
  await harness.resync();
  return harness;
}

/** Reports and cleanup are not counted. */
const NOT_COUNTED = ['RecordEvent', 'DeleteSnapshot'];
const write = (actions: object) =>
  Object.entries(actions)
    .filter(([action]) => !NOT_COUNTED.includes(action))
    .map(([action, count]) => `${action} ${count}`)
    .join(', ') || 'nothing';

/** The actions until nothing is under way: a user's key is deleted on the old instance before a new one is created. */
async function resync(harness: Harness, path: string): Promise<Record<string, number>> {
  const actions: Record<string, number> = {};
  for (let [run, isOver] = [0, false]; run < 3 && !isOver; run += 1) {
    const report = await harness.resync();
    expect({ path, failed: report.failed }).toEqual({ path, failed: {} });
    for (const [action, count] of Object.entries(report.actions)) actions[action] = (actions[action] ?? 0) + count;
    isOver = report.underWay === undefined;
  }
  return Object.fromEntries(Object.entries(actions).toSorted());
}

test('the actions of each edit are as in the golden file, and a second run has no actions', async () => {
  const lines: string[] = [];
  for (const [name, edits] of Object.entries(EDITS)) {
    const [kind, object] = EDITED[name as KindName];
    for (const [path, edit] of Object.entries(edits)) {
      if (typeof edit === 'string') {
        lines.push(`${name} ${path}: ${edit}`);
        continue;
      }
      const harness = await converged();
      const carry = async (spec: Spec) => {
        await harness.edit(kind, object, { spec });
        harness.clock.pass(1000);
        const actions = await resync(harness, path);
        const writes = harness.writes();
        const next = await harness.resync();
        expect({ path, spec, again: next.actions }).toEqual({ path, spec, again: {} });
        expect(harness.writes()).toBe(writes);
        return write(actions);
      };
      if (edit.before !== undefined) await carry(edit.before);
      lines.push(`${name} ${path}: ${await carry(edit.change)}; cleared: ${await carry(edit.clear)}`);
    }
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(join(import.meta.dirname, 'golden/fields.golden.txt'));
});
