// Does a key work at once whenever it is applied, while one run of the CronJob hands over to the next? Real processes, a key a second.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import type { KubeTransport } from '#adapters/kubernetes/transport.ts';
import { watch } from '#adapters/kubernetes/watch.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Cluster, KubeObject } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, virtualKeys } from '#crds/kinds.ts';
import { PARTS } from '../../functions/reconcile/workload/parts.ts';
import { LEASES } from '../../infra/kubernetes/lease.ts';
import { applyKinds, put } from '../../infra/local/cluster/manifests.ts';
import { DEPLOYABLES, writeBundles } from '../../infra/tools/build.ts';
import { openAccounts } from '../accounts.ts';
import { quantile } from '../bench/hints/keys.ts';
import { run } from '../child.ts';
import { startControlPlane, whyNoControlPlane } from '../control-plane.ts';
import { eventually } from '../eventually.ts';
import { startPostgres } from '../postgres.ts';
import { describeSideBySide } from '../side-by-side.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { openWitness, type Witness } from '../witness.ts';
import { apply, sampleFor, startWorld } from './world.ts';

/** How long keys are applied (`LISTEN_TEST_SECONDS=180` for three minutes); the CronJob's minute is so many seconds here. */
const LISTENED = Number(process.env.LISTEN_TEST_SECONDS ?? 36);
const MINUTE = Number(process.env.LISTEN_TEST_MINUTE ?? 12);

interface Ground {
  /** As an administrator. */
  readonly kubeconfig: string;
  /** As reconcile's service account, where there are such. */
  readonly asReconcile: string;
  readonly hasRights: boolean;
  readonly database: DatabaseConnection;
  stop(): Promise<void>;
}

const GROUNDS = [
  { name: 'the embedded API server', why: undefined, start: startEmbedded },
  { name: 'a real API server, as the service account', why: whyNoControlPlane(), start: startReal },
];

describeSideBySide(GROUNDS, 'a run that listens', ({ name: place, start }) => {
  let ground: Ground;
  let request: KubeTransport;
  let cluster: Cluster;
  let bundle: string;
  let witness: Witness;
  const closing: Array<() => Promise<unknown>> = [];
  const processes: Run[] = [];

  beforeAll(async () => {
    const folder = temporaryFolder();
    const reconcile = DEPLOYABLES.filter(({ output }) => output === 'node/reconcile.mjs');
    [ground] = await Promise.all([start(), writeBundles(folder, reconcile)]);
    closing.push(ground.stop);
    bundle = join(folder, 'node/reconcile.mjs');
    const transport = await createKubeconfigTransport(ground.kubeconfig);
    closing.unshift(transport.close);
    request = transport.request;
    cluster = createCluster({ request });
    await applyKinds(cluster);
    witness = await openWitness(ground.kubeconfig);
    closing.unshift(witness.stop);
    const sample = sampleFor(ground.database, 'http://127.0.0.1:9');
    await apply(
      cluster,
      sample.filter(({ kind }) => kind === 'Secret' || kind === 'GatewayInstance'),
    );
  });
  afterEach(async () => {
    const said = processes.map(({ printed }) => printed());
    for (const child of processes.splice(0)) await child.kill();
    expect(await witness.search(said), 'keys and passwords that are shown').toEqual([]);
  });
  afterAll(async () => {
    for (const close of closing) await close();
  });

  const startRun = (seconds: number): Run => {
    const child = startProcess(bundle, {
      KUBECONFIG: ground.asReconcile,
      GATEWAY_PROCESSES: 'one',
      RECONCILE_TOKEN: 'the-token-of-reconcile-in-tests',
      LISTEN_SECONDS: String(seconds),
    });
    processes.push(child);
    return child;
  };
  const makeKey = (name: string): KubeObject => ({
    apiVersion: virtualKeys.apiVersion,
    kind: 'VirtualKey',
    metadata: { name, namespace: 'default' },
    spec: {
      keyAlias: name,
      maxBudget: '1',
      budgetDuration: '30d',
      connectionRef: { instanceRef: { name: 'sample', namespace: 'default' } },
    },
  });
  const isActive = ({ status }: KubeObject) => (status as { isActive?: boolean } | undefined)?.isActive === true;
  const works = async (name: string) => {
    const key = await cluster.get(virtualKeys, 'default', name);
    return key !== undefined && isActive(key);
  };
  const holder = async () => {
    const lease = await cluster.get(LEASES, 'gateway-operator', 'reconcile');
    return (lease?.spec as { holderIdentity?: string } | undefined)?.holderIdentity;
  };

  test(
    'a key applied in any second works long before the next sweep',
    async () => {
      const applied = new Map<string, number>();
      const worked = new Map<string, number>();
      const over = new AbortController();
      const watching = watch(request, {
        resource: virtualKeys,
        signal: over.signal,
        onEvent: ({ object }) => {
          const { name } = object.metadata;
          if (isActive(object) && !worked.has(name)) worked.set(name, Date.now());
        },
      });
      const runs = [startRun(MINUTE * 2.5)];
      await eventually(holder, (name) => name !== undefined);
      for (let second = 0; second < LISTENED; second += 1) {
        const next = Date.now() + 1000;
        if (second > 0 && second % MINUTE === 0) runs.push(startRun(MINUTE * 2.5));
        const name = `k${second}`;
        applied.set(name, Date.now());
        await put(cluster, makeKey(name), true);
        // An edit of something else that is heard of, and must not hold anything up.
        if (second % 10 === 0) await apply(cluster, [makeTeam(second)]);
        await pause(Math.max(0, next - Date.now()));
      }
      await eventually(
        async () => worked.size,
        (count) => count === applied.size,
        30_000,
      );
      over.abort();
      await watching;
      const waited = [...applied].map(([name, at]) => [name, (worked.get(name) ?? Number.NaN) - at] as const);
      // A key that nobody heard of waits for the next sweep, which is half a minute away on average: so this names it.
      expect(waited.filter(([, millis]) => !(millis < (MINUTE * 1000) / 3))).toEqual([]);
      const last = runs.pop();
      for (const run of runs) {
        expect(await run.ended).toBe(0);
        expect(run.printed()).toContain('a successor listens');
      }
      const began = Date.now();
      expect(await last?.stop()).toBe(0);
      expect(last?.printed()).toContain('told to stop');
      expect(Date.now() - began).toBeLessThan(25_000);
      const said = waited.map(([, millis]) => millis).sort((a, b) => a - b);
      process.stdout.write(
        `      ${said.length} keys on ${place}: median ${quantile(said, 0.5)} ms, p99 ${quantile(said, 0.99)} ms, slowest ${said.at(-1)} ms; ${runs.length} hand-overs\n`,
      );
    },
    (LISTENED + 120) * 1000,
  );

  test('a run that is killed takes nothing with it', async () => {
    const before = await holder();
    const first = startRun(60);
    const firsts = await eventually(holder, (name) => name !== before);
    // Before it has the Lease: whoever has it listens on.
    await startRun(60).kill();
    await put(cluster, makeKey('heard-by-the-first'), true);
    await eventually(() => works('heard-by-the-first'), Boolean);
    expect(await holder()).toBe(firsts);
    // After it has the Lease: whoever comes next sweeps.
    const second = startRun(60);
    await eventually(holder, (name) => name !== firsts);
    expect(await first.ended).toBe(0);
    await second.kill();
    await put(cluster, makeKey('heard-by-nobody'), true);
    const third = startRun(60);
    await eventually(() => works('heard-by-nobody'), Boolean);
    expect(await third.stop()).toBe(0);
  });

  test('an instance is ready as soon as its Deployment is', async () => {
    const sample = sampleFor(ground.database, 'http://127.0.0.1:9').find(({ kind }) => kind === 'GatewayInstance');
    const metadata = { name: 'deployed', namespace: 'default' };
    const spec = { ...(sample?.spec as object), workload: { type: 'Deployment' } };
    const listening = startRun(60);
    const before = await holder();
    await eventually(holder, (name) => name !== before);
    await put(cluster, { ...sample, metadata, spec } as KubeObject, true);
    const look = async () => {
      const found = await cluster.get(gatewayInstances, 'default', 'deployed');
      const { conditions = [] } = (found?.status ?? {}) as {
        conditions?: ReadonlyArray<{ type: string; status: string }>;
      };
      return conditions.find(({ type }) => type === 'WorkloadReady')?.status;
    };
    await eventually(look, (said) => said === 'False');
    const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    const conditions = [{ type: 'Available', status: 'True' }];
    const status = { observedGeneration: 1, ...counts, conditions };
    const written = await cluster.patch(PARTS.Deployment, 'default', 'deployed-gateway', { status }, 'status');
    expect(written.ok).toBe(true);
    // The next sweep is a minute away.
    expect(await eventually(look, (said) => said === 'True')).toBe('True');
    expect(await listening.stop()).toBe(0);
  });

  test('without a right to the Lease a run listens until its time is over', async () => {
    if (!ground.hasRights) return;
    await run('kubectl', ['-n', 'gateway-operator', 'delete', 'role', 'reconcile-lease'], {
      KUBECONFIG: ground.kubeconfig,
    });
    const [one, other] = [startRun(8), startRun(8)];
    await eventually(async () => one.printed().includes('the Lease cannot be taken'), Boolean);
    await put(cluster, makeKey('without-a-lease'), true);
    await eventually(() => works('without-a-lease'), Boolean);
    for (const each of [one, other]) {
      expect(await each.ended).toBe(0);
      expect(each.printed()).toContain('its time is over');
    }
    expect(await works('without-a-lease')).toBe(true);
  });
});

const makeTeam = (serial: number): KubeObject => ({
  apiVersion: teams.apiVersion,
  kind: 'Team',
  metadata: { name: 'team', namespace: 'default' },
  spec: {
    teamAlias: 'team',
    maxBudget: String(serial + 1),
    budgetDuration: '30d',
    connectionRef: { instanceRef: { name: 'sample', namespace: 'default' } },
  },
});

interface Run {
  readonly ended: Promise<number | null>;
  printed(): string;
  stop(): Promise<number | null>;
  kill(): Promise<unknown>;
}

function startProcess(bundle: string, environment: Readonly<Record<string, string>>): Run {
  const env = { PATH: process.env.PATH ?? '', ...environment };
  const child: ChildProcess = spawn(process.execPath, [bundle, '--listen'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      printed += chunk;
    });
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal);
    return ended;
  };
  return { ended, printed: () => printed, stop: () => end('SIGTERM'), kill: () => end('SIGKILL') };
}

async function startEmbedded(): Promise<Ground> {
  const { kubeconfig, database, cluster, stop } = await startWorld();
  await put(cluster, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'gateway-operator' } }, false);
  return { kubeconfig, asReconcile: kubeconfig, hasRights: false, database, stop };
}

async function startReal(): Promise<Ground> {
  const [plane, postgres] = await Promise.all([startControlPlane(), startPostgres()]);
  const database = await postgres.createDatabase();
  const { reconcile } = await openAccounts(plane.kubeconfig, temporaryFolder());
  const stop = async () => {
    await plane.stop();
    await postgres.stop();
  };
  return { kubeconfig: plane.kubeconfig, asReconcile: reconcile, hasRights: true, database, stop };
}
