// Pods of a real node, listed and evicted, and what a removed operator has left.
import { eventually } from '../support/eventually.ts';
import type { Rig } from './rig.ts';

const OURS = /gateway|\/(admission|reconcile|trigger|uninstall)(-|$)|llm|-key$/;

interface Pod {
  readonly metadata: { readonly deletionTimestamp?: string };
  readonly spec: {
    readonly containers: ReadonlyArray<{
      readonly ports?: ReadonlyArray<{ readonly name: string; readonly containerPort: number }>;
    }>;
  };
  readonly status: {
    readonly phase: string;
    readonly podIP: string;
    readonly containerStatuses?: ReadonlyArray<{ readonly containerID?: string; readonly restartCount: number }>;
  };
}

/** As a drain does: each Pod as soon as its disruption budget allows. */
export async function evictAll(rig: Rig, namespace: string, name: string): Promise<void> {
  const selector = `-n ${namespace} get pods -l app.kubernetes.io/name=${name} -o name`;
  const deployment = name === 'gateway' ? `${namespace}-gateway` : name;
  for (const pod of (await rig.kubectl(selector))
    .trim()
    .split('\n')
    .map((one) => one.replace('pod/', ''))) {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace } };
    const path = `/api/v1/namespaces/${namespace}/pods/${pod}/eviction`;
    const evict = () => rig.run('kubectl', ['create', '--raw', path, '-f', '-'], JSON.stringify(eviction));
    await eventually(evict, ({ code, stderr }) => code === 0 || stderr.includes('not found'), 90_000);
  }
  await rig.kubectl(`-n ${namespace} rollout status deployment/${deployment} --timeout=90s`);
}

/** Those that run and are not about to end. */
export async function podsOf(rig: Rig, ...namespaces: string[]): Promise<ReadonlyArray<Pod>> {
  const lists = await Promise.all(namespaces.map((one) => rig.call('GET', `/api/v1/namespaces/${one}/pods`)));
  const pods = lists.flatMap(({ body }) => (body as { items: Pod[] }).items);
  return pods.filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status.phase === 'Running');
}

/** Objects of every kind whose names are ours; fails where one of our kinds is left. */
export async function replays(rig: Rig): Promise<ReadonlyArray<string>> {
  const kinds = (await rig.kubectl('api-resources --verbs=list -o name')).split('\n').filter(Boolean);
  const left = kinds.filter((kind) => kind.includes('gateway-operator'));
  if (left.length > 0) throw new Error(`kinds are left: ${left}`);
  const lists = kinds
    .filter((kind) => !/^events|componentstatuses/.test(kind))
    .map((kind) => rig.kubectl(`get ${kind} -A -o name`));
  const names = (await Promise.all(lists)).join('').split('\n');
  return names.filter((name) => OURS.test(name)).sort();
}
