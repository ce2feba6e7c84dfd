// Is each change looked at once, a few at a time, and is what we wrote ourselves no news?
import { beforeEach, expect, test } from 'vitest';
import type { KubeObject } from '#core/ports/cluster.ts';
import { gatewayInstances, kinds, virtualKeys } from '#crds/kinds.ts';
import { createMemoryCluster } from '../../test/doubles/cluster.ts';
import { type Changes, type ChangesDependencies, startChanges, tellWrites, type Watching } from './changes.ts';

const START = Date.parse('2026-11-21T12:00:00Z');

let watches: Map<string, Watching>;
let posted: string[];
let sweeps: number;
/** Lets the looks under way end; absent: they end at once. */
let hold: PromiseWithResolvers<void> | undefined;
let most: number;
let changes: Changes;
let wake: () => void;

beforeEach(() => {
  watches = new Map();
  posted = [];
  sweeps = 0;
  most = 0;
  hold = undefined;
  changes = start();
});

function start(more: Partial<ChangesDependencies> = {}): Changes {
  let under = 0;
  let id = 0;
  const callbacks: Array<() => void> = [];
  wake = () => {
    for (const callback of callbacks.splice(0)) callback();
  };
  return startChanges({
    watch: ({ resource }, watching) => {
      watches.set(resource.kind, watching);
      return new Promise((resolve) => watching.signal.addEventListener('abort', () => resolve()));
    },
    post: async (headers, body) => {
      const { kind, name } = JSON.parse(body) as { kind: string; name: string };
      posted.push(`${headers['ce-type']?.split('.').at(-1)} ${kind} ${name}`);
      under += 1;
      most = Math.max(most, under);
      await hold?.promise;
      under -= 1;
    },
    sweep: async () => {
      sweeps += 1;
      await hold?.promise;
    },
    newId: () => {
      id += 1;
      return `${id}`;
    },
    clock: { now: () => START },
    timer: (_, callback) => {
      callbacks.push(callback);
      return () => callbacks.splice(callbacks.indexOf(callback), 1);
    },
    ...more,
  });
}

const key = (name: string, metadata: object = {}, status?: object): KubeObject => ({
  apiVersion: virtualKeys.apiVersion,
  kind: 'VirtualKey',
  metadata: { name, namespace: 'default', uid: `uid-${name}`, generation: 1, ...metadata },
  ...(status === undefined ? {} : { status }),
});
const hear = (object: KubeObject, type: 'ADDED' | 'MODIFIED' | 'DELETED' = 'MODIFIED') =>
  watches.get(object.kind)?.onEvent({ type, object });
/** Lets everything that can happen happen. */
const settle = async () => {
  wake();
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

test('a new, an edited and a deleted object are each looked at', async () => {
  hear(key('chat'), 'ADDED');
  await settle();
  hear(key('chat', { generation: 2 }));
  await settle();
  hear(key('chat', { generation: 2, annotations: { rotate: 'now' } }));
  await settle();
  hear(key('chat', { generation: 2 }), 'DELETED');
  await settle();
  expect(posted).toEqual([
    'add VirtualKey chat',
    'update VirtualKey chat',
    'update VirtualKey chat',
    'delete VirtualKey chat',
  ]);
});

test('changes that come together are one look, and a status is none', async () => {
  hear(key('chat'), 'ADDED');
  hear(key('chat', { finalizers: ['a'] }));
  hear(key('chat', { finalizers: ['a'] }, { isActive: true }));
  await settle();
  hear(key('chat', { finalizers: ['a'] }, { isActive: false }));
  await settle();
  expect(posted).toEqual(['update VirtualKey chat']);
});

test('what we wrote ourselves is no news, whether its answer or its event comes first', async () => {
  hear(key('chat'), 'ADDED');
  await settle();
  changes.wrote(key('chat', { finalizers: ['a'] }));
  hear(key('chat', { finalizers: ['a'] }));
  await settle();
  hear(key('chat', { finalizers: [] }));
  changes.wrote(key('chat', { finalizers: [] }));
  await settle();
  expect(posted).toEqual(['add VirtualKey chat']);
  hear(key('chat', { finalizers: [], generation: 2 }));
  await settle();
  expect(posted).toHaveLength(2);
});

test('an instance that has just turned ready is looked at with its keys, even though we wrote that; one that was ready is not', async () => {
  const instance = (at: string): KubeObject => ({
    apiVersion: gatewayInstances.apiVersion,
    kind: 'GatewayInstance',
    metadata: { name: 'main', namespace: 'default', uid: 'uid-main', generation: 1 },
    status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at }] },
  });
  changes.wrote(instance('2026-11-21T11:00:00Z'));
  hear(instance('2026-11-21T11:00:00Z'));
  await settle();
  expect(posted).toEqual([]);
  await changes.stop();
  changes = start();
  changes.wrote(instance('2026-11-21T11:59:58Z'));
  hear(instance('2026-11-21T11:59:58Z'));
  await settle();
  expect(posted).toEqual(['update GatewayInstance main']);
});

test('eight looks at most are under way, never two at one object, and none is forgotten', async () => {
  hold = Promise.withResolvers();
  for (let index = 0; index < 30; index += 1) hear(key(`k${index}`), 'ADDED');
  await settle();
  hear(key('k0', { generation: 2 }));
  await settle();
  expect(posted).toHaveLength(8);
  hold.resolve();
  await settle();
  await settle();
  expect(most).toBe(8);
  expect(new Set(posted).size).toBe(31);
  expect(posted).toContain('update VirtualKey k0');
});

test('very many changes at once are one sweep, and what changes during it is looked at beside it', async () => {
  hold = Promise.withResolvers();
  for (let index = 0; index < 101; index += 1) hear(key(`k${index}`), 'ADDED');
  await settle();
  expect([sweeps, posted.length]).toEqual([1, 0]);
  hear(key('late'), 'ADDED');
  hear(key('k0'));
  await settle();
  expect([sweeps, posted]).toEqual([1, ['add VirtualKey late']]);
  hold.resolve();
});

test('whoever stops it waits until everything that was heard is looked at', async () => {
  hold = Promise.withResolvers();
  for (let index = 0; index < 20; index += 1) hear(key(`k${index}`), 'ADDED');
  let stopped = false;
  const stopping = changes.stop().then(() => {
    stopped = true;
  });
  await settle();
  expect(stopped).toBe(false);
  hold.resolve();
  await stopping;
  expect(posted).toHaveLength(20);
});

test('it watches all our kinds, and says when every watch stands', async () => {
  let all = false;
  void changes.watched.then(() => {
    all = true;
  });
  const started = [...watches.values()];
  expect([...watches.keys()]).toEqual(kinds.map(({ kind }) => kind));
  for (const watching of started.slice(1)) watching.onStart();
  await settle();
  expect(all).toBe(false);
  started[0]?.onStart();
  await settle();
  expect(all).toBe(true);
});

test('another kind can be about one of ours, and says itself what of it is news', async () => {
  const resource = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' };
  changes = start({
    sources: [
      {
        resource,
        labelSelector: 'ours=true',
        about: ({ metadata }) => ({
          apiVersion: 'x',
          kind: 'GatewayInstance',
          namespace: 'default',
          name: metadata.name,
        }),
        news: ({ status }) => status,
      },
    ],
  });
  const deployment = (ready: number): KubeObject => ({ ...key('main'), kind: 'Deployment', status: { ready } });
  for (const ready of [0, 0, 1]) {
    hear(deployment(ready));
    await settle();
  }
  expect(posted).toEqual(['update GatewayInstance main', 'update GatewayInstance main']);
});

test('a cluster tells what is written through it, and nothing that was refused', async () => {
  const ids = { next: () => crypto.randomUUID() };
  const wrote: string[] = [];
  const cluster = tellWrites(createMemoryCluster({ clock: { now: () => START }, ids }), ({ metadata }) =>
    wrote.push(metadata.name),
  );
  const resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' };
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } };
  await cluster.create(resource, map);
  await cluster.create(resource, map);
  await cluster.patch(resource, 'default', 'a', { data: { b: 'c' } });
  await cluster.patch(resource, 'default', 'none', {});
  expect(wrote).toEqual(['a', 'a']);
});
