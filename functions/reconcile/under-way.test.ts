// Does a report say how many objects change by themselves, so that whoever asked asks again?
import { beforeEach, expect, test } from 'vitest';
import { gatewayInstances, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { runDeployment } from '../../test/reconcile/controllers.ts';
import { makeInstance, makeKey, makeSecrets } from '../../test/reconcile/objects.ts';
import { PARTS } from './workload/parts.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets());
});

test('a gateway that starts is under way until it is ready, for a hint about its key as well', async () => {
  bed.servedAt = 'nobody';
  await bed.apply(makeInstance({ workload: { type: 'Deployment' } }), makeKey());
  expect(await bed.sweep()).toMatchObject({ underWay: 1 });
  expect(await bed.hint('VirtualKey', 'chat')).toMatchObject({ underWay: 1 });
  await runDeployment(bed);
  expect(await bed.hint('GatewayInstance', 'main')).not.toHaveProperty('underWay');
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
  expect(await bed.sweep()).not.toHaveProperty('underWay');
});

test('a rollout that is stuck, and a paused instance, wait for a person: nothing is under way', async () => {
  bed.servedAt = 'nobody';
  await bed.apply(makeInstance({ workload: { type: 'Deployment' } }));
  await bed.sweep();
  const conditions = [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'late.' }];
  await bed.editStatus(PARTS.Deployment, 'main-gateway', { conditions });
  expect(await bed.sweep()).not.toHaveProperty('underWay');
  await bed.editStatus(PARTS.Deployment, 'main-gateway', { conditions: [] });
  expect(await bed.sweep()).toMatchObject({ underWay: 1 });
  await bed.edit(gatewayInstances, 'main', { spec: { paused: true } });
  expect(await bed.sweep()).not.toHaveProperty('underWay');
});

test('a deletion that waits for its database is under way until the key is let go', async () => {
  await bed.apply(makeInstance(), makeKey());
  await bed.sweep();
  bed.refuse(true);
  await bed.remove(virtualKeys, 'chat');
  expect(await bed.sweep()).toMatchObject({ underWay: 1 });
  bed.clock.pass(21_000);
  expect(await bed.sweep()).not.toHaveProperty('underWay');
});

test('an object that a hint names and that is not stored yet is under way; one that was there and went is not', async () => {
  await bed.apply(makeInstance());
  await bed.sweep();
  expect(await bed.hint('VirtualKey', 'chat')).toMatchObject({ underWay: 1 });
  await bed.apply(makeKey());
  expect(await bed.hint('VirtualKey', 'chat')).not.toHaveProperty('underWay');
  await bed.remove(virtualKeys, 'chat');
  expect(await bed.hint('VirtualKey', 'chat')).not.toHaveProperty('underWay');
});
