// How do tests look at what runs the gateway of the instance `main`, and at what is written of it?

import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { WORKLOAD_OBJECTS, type WorkloadObjectKind } from '../../functions/reconcile/workload/workload-objects.ts';
import { runDeployment } from './controllers.ts';
import type { Harness } from './harness.ts';
import { makeInstance, makeKey, makeSecret } from './objects.ts';

type Template = { spec: { template: { metadata: { annotations: Record<string, string> } } } };

/** `harness` is asked anew for each call: each test has its own. */
export function createWorkloads(harness: () => Harness) {
  const redis = () => harness().apply(makeSecret('store', { host: 'redis', port: '6379', password: '' }));
  const main = () => harness().status(gatewayInstances, 'main');
  const ready = () => harness().ready(gatewayInstances, 'main');
  const message = async (type: string) => (await main()).conditions?.find((one) => one.type === type)?.message;
  const part = (name: WorkloadObjectKind) =>
    harness()
      .cluster.objects(WORKLOAD_OBJECTS[name])
      .find(({ kind }) => kind === WORKLOAD_OBJECTS[name].kind);
  const there = () =>
    (Object.keys(WORKLOAD_OBJECTS) as WorkloadObjectKind[]).filter((name) => part(name) !== undefined);
  const edit = (workload: object) => harness().edit(gatewayInstances, 'main', { spec: { workload } });
  const writes = async (act: () => Promise<unknown>) => {
    const before = harness().cluster.calls.length;
    await act();
    return harness()
      .cluster.calls.slice(before)
      .filter(({ verb, isNoOp }) => (verb === 'apply' || verb === 'delete') && isNoOp !== true)
      .map(({ verb, resource }) => `${verb} ${resource.kind}`);
  };
  const resyncs = () => writes(() => harness().resync());
  const servedSnapshot = () =>
    (part('Deployment') as unknown as Template).spec.template.metadata.annotations['gateway-operator.dev/snapshot'];

  /** Until the Deployment runs and nothing is left to do. */
  const running = async (workload: object = { type: 'Deployment' }) => {
    await harness().apply(makeInstance({ workload }), makeKey());
    await harness().resync();
    await runDeployment(harness());
    await harness().resync();
  };
  return { redis, main, ready, message, part, there, edit, writes, resyncs, servedSnapshot, running };
}
