// An instance that is created again continues with the keys and the spend of the previous one, if its annotation
// requests it.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { recordOf } from '../../../test/doubles/policies.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

const ADOPT = 'instance.gateway-operator.dev/adopt-ledger';
const MINUTE = 60_000;

let harness: Harness;
let value: string;
let old: string;

const uidOf = async (name = 'main') => (await harness.get(gatewayInstances, name))?.metadata.uid ?? '';
const pass = (millis: number) => {
  harness.clock.pass(millis);
  return harness.resync();
};
const successor = (ledger: string, spec: object = {}) => {
  const instance = makeInstance(spec);
  return { ...instance, metadata: { ...instance.metadata, annotations: { [ADOPT]: ledger } } };
};
const condition = async (type: string) =>
  (await harness.status(gatewayInstances, 'main')).conditions?.find((one) => one.type === type);

/** A deleted instance, which had a key with spend. */
async function deletedInstance(target: Harness, spec: object = {}): Promise<string> {
  await target.apply(...makeSecrets(), makeInstance(), makeTeam({ members: [{ name: 'alice' }] }), makeUser());
  await target.apply(makeKey(spec));
  await target.resync();
  await target.spend('chat', '2.5');
  await target.spend('alice@example.com', '4');
  await target.resync();
  const uid = (await target.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  await target.remove(gatewayInstances, 'main');
  await target.resync();
  return uid;
}

beforeEach(async () => {
  harness = createHarness();
  old = await deletedInstance(harness);
  value = (await harness.value('chat-key')) ?? '';
});

describe('an instance that is created again', () => {
  test('begins a new ledger: the keys keep their values, and have no spend', async () => {
    await harness.apply(makeInstance());
    await pass(MINUTE);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, currentSpend: '0' });
  });

  test('with the annotation continues with keys, users, spend and windows, and names the ledger', async () => {
    const before = await harness.status(virtualKeys, 'chat');
    await pass(MINUTE);
    await harness.apply(successor(old));
    const report = await pass(MINUTE);
    expect(report.failed).toEqual({});
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({
      keyValue: value,
      currentSpend: '2.5',
      budgetResetDate: before.budgetResetDate,
      isActive: true,
    });
    expect(await harness.status(users, 'alice')).toMatchObject({ currentSpend: '4' });
    expect(await harness.works(value)).toBe(true);
    expect(await condition('LedgerAdopted')).toMatchObject({ status: 'True', reason: 'Adopted' });
    expect((await pass(MINUTE)).actions).toEqual({});
    harness.restart();
    expect((await pass(MINUTE)).actions).toEqual({});
    await harness.edit(gatewayInstances, 'main', { metadata: { annotations: { [ADOPT]: null } } });
    await pass(MINUTE);
    expect(await condition('LedgerAdopted')).toBeUndefined();
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '2.5' });
  });

  test('with the annotation, after the window of a key was edited: its spend is counted again, not reset', async () => {
    await harness.edit(virtualKeys, 'chat', { spec: { budgetDuration: '60d' } });
    await harness.apply(successor(old));
    await pass(MINUTE);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '2.5' });
  });

  test('does not restore a key that was deleted while there was no instance', async () => {
    await harness.remove(virtualKeys, 'chat');
    await pass(MINUTE);
    await harness.apply(successor(old));
    await pass(MINUTE);
    const found = await recordOf(harness.database().policies(await uidOf()), sha256(value));
    expect(found?.key.blocked ?? true).toBe(true);
    await pass(2 * 60 * MINUTE);
    expect(await harness.works(value)).toBe(false);
  });

  test('keeps retained keys working that have no object', async () => {
    harness = createHarness();
    await harness.apply(...makeSecrets(), makeInstance(), makeKey({ deletionPolicy: 'Retain' }));
    await harness.resync();
    value = (await harness.value('chat-key')) ?? '';
    await harness.remove(virtualKeys, 'chat');
    await pass(MINUTE);
    old = await uidOf();
    await harness.remove(gatewayInstances, 'main');
    await pass(MINUTE);
    expect(await harness.works(value)).toBe(false);
    await harness.apply(successor(old));
    await pass(MINUTE);
    expect(await harness.works(value)).toBe(true);
    await pass(3 * 60 * MINUTE);
    expect(await harness.works(value)).toBe(true);
  });
});

describe('keys that are restored from a backup after their instance', () => {
  test('keep value and spend, also if they are restored some minutes later, with other uids', async () => {
    const secret = await harness.get(RESOURCES.secrets, 'chat-key');
    await harness.remove(virtualKeys, 'chat');
    await pass(MINUTE);
    await harness.apply(successor(old));
    await pass(MINUTE);
    await pass(10 * MINUTE);
    const { labels, annotations } = secret?.metadata ?? {};
    if (secret === undefined) throw new Error('the key had no Secret');
    await harness.apply({
      ...secret,
      metadata: { name: 'chat-key', namespace: 'default', labels, annotations },
    } as never);
    await harness.apply(makeKey());
    await pass(MINUTE);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({
      keyValue: value,
      currentSpend: '2.5',
      isActive: true,
    });
  });

  test('have the spend of their users and teams, if these are restored with their names', async () => {
    for (const [kind, name] of [
      [users, 'alice'],
      [teams, 'research'],
    ] as const) {
      await harness.remove(kind, name);
      await pass(MINUTE);
      expect(await harness.get(kind, name)).toBeUndefined();
    }
    await harness.apply(successor(old));
    await pass(MINUTE);
    await harness.apply(makeTeam({ members: [{ name: 'alice' }] }), makeUser({ autoCreateKey: false }));
    await pass(MINUTE);
    expect(await harness.status(users, 'alice')).toMatchObject({ currentSpend: '4' });
    expect(await harness.ready(teams, 'research')).toBe('True Ready');
    expect((await pass(MINUTE)).actions).toEqual({});
  });

  test('without their Secrets get new values immediately, their alias, and no spend', async () => {
    await harness.remove(virtualKeys, 'chat');
    await pass(MINUTE);
    await harness.apply(successor(old));
    await pass(MINUTE);
    await harness.apply(makeKey());
    await pass(MINUTE);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '0', isActive: true });
    expect(await harness.value('chat-key')).not.toBe(value);
    expect(await harness.works(value)).toBe(false);
  });
});

describe('the annotation is refused, and no ledger begins,', () => {
  const refused = async (words: RegExp | string) => {
    const report = await pass(MINUTE);
    expect(report.failed).toEqual({ OpenInstance: 1 });
    expect(await harness.ready(gatewayInstances, 'main')).toBe('False LedgerNotAdopted');
    expect((await condition('Ready'))?.message).toMatch(words);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotReady');
    expect(await harness.database().claims(await uidOf())).toEqual([]);
  };

  test('if its uid is unknown in this database', async () => {
    await harness.apply(successor('0000-nobody'));
    await refused(/the uid of no instance in this database: correct the uid, or spec.databaseSecretRef/);
    await harness.edit(gatewayInstances, 'main', { metadata: { annotations: { [ADOPT]: old } } });
    await pass(MINUTE);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '2.5', isActive: true });
  });

  test('if the old ledger is in another database', async () => {
    const other = makeSecrets('elsewhere')[0];
    await harness.apply(...(other === undefined ? [] : [other]), successor(old));
    await refused(/the uid of no instance in this database/);
  });

  test('if it names its own instance', async () => {
    await harness.apply(makeInstance());
    await harness.edit(gatewayInstances, 'main', { metadata: { annotations: { [ADOPT]: await uidOf() } } });
    await refused(/is the uid of this instance/);
  });

  test('if it names an instance that is still open', async () => {
    await harness.apply(makeInstance({}, 'second'));
    await pass(MINUTE);
    await harness.apply(successor(await uidOf('second')));
    await refused(/not closed: delete that instance first/);
  });

  test('if it names an instance whose cluster is gone, until it has the word lost', async () => {
    await harness.database().openInstance({ uid: 'theirs', namespace: 'default', name: 'main', cluster: 'lost' });
    await harness.apply(successor('theirs'));
    await refused('if its whole cluster is gone, write "theirs lost"');
    await harness.edit(gatewayInstances, 'main', { metadata: { annotations: { [ADOPT]: 'theirs lost' } } });
    await pass(MINUTE);
    expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
    expect(await harness.database().openInstances('lost')).toEqual([]);
  });

  test('if it calls an instance lost that this cluster still has: that instance keeps its keys', async () => {
    await harness.apply(makeInstance({}, 'second'));
    await harness.apply(
      makeKey(
        { keyAlias: 'theirs', connectionRef: { instanceRef: { name: 'second', namespace: 'default' } } },
        'theirs',
      ),
    );
    await pass(MINUTE);
    const theirs = (await harness.value('theirs-key')) ?? '';
    await harness.apply(successor(`${await uidOf('second')} lost`));
    await refused(/is not lost: it is the instance default\/second of this cluster/);
    expect(await harness.ready(gatewayInstances, 'second')).toBe('True Ready');
    expect(await recordOf(harness.database().policies(await uidOf('second')), sha256(theirs))).toBeDefined();
    await harness.remove(gatewayInstances, 'second');
    await pass(MINUTE);
    await pass(MINUTE);
    expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
    expect(await condition('LedgerAdopted')).toMatchObject({ status: 'True' });
  });

  test('if another instance continues the ledger already, which the message names', async () => {
    const second = { ...successor(old), metadata: { ...successor(old).metadata, name: 'second' } };
    await harness.apply(second);
    await pass(MINUTE);
    await harness.apply(successor(old));
    await refused(new RegExp(`the instance ${await uidOf('second')} continues already`));
  });
});

test('an instance that has keys of its own keeps them, and a condition reports that the annotation is too late', async () => {
  await harness.apply(makeInstance());
  await pass(MINUTE);
  await harness.edit(gatewayInstances, 'main', { metadata: { annotations: { [ADOPT]: old } } });
  await pass(MINUTE);
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
  expect(await condition('LedgerAdopted')).toMatchObject({ status: 'False', reason: 'LedgerInUse' });
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '0', isActive: true });
});

test('a ledger is adopted once, also if a run dies at any write or two runs overlap', async () => {
  for (let step = 1; ; step += 1) {
    harness = createHarness();
    old = await deletedInstance(harness);
    value = (await harness.value('chat-key')) ?? '';
    await harness.apply(successor(old));
    let count = 0;
    let died = false;
    const dies = () => {
      count += 1;
      died = died || count === step;
      return died;
    };
    harness.cluster.inject(({ verb }) => {
      if (verb !== 'get' && verb !== 'list' && dies()) throw new Error('killed');
      return undefined;
    });
    harness.onDatabase = (method) => {
      const writes = ['migrate', 'openInstance', 'putScope', 'endValues', 'removeValue', 'retire'];
      if (writes.includes(method) && dies()) throw new Error('killed');
    };
    await harness.resync();
    harness.cluster.inject(() => undefined);
    harness.onDatabase = () => undefined;
    harness.restart();
    harness.clock.pass(1000);
    const reports = await Promise.all([harness.resync(), harness.resync()]);
    expect({ step, failed: reports.map(({ failed }) => failed) }).toEqual({ step, failed: [{}, {}] });
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({
      keyValue: value,
      currentSpend: '2.5',
      isActive: true,
    });
    if (!died) break;
  }
});
