// A kubelet for Jobs, as far as Helm's hooks need one: it runs their programs with the rights of their accounts, and
// says how they ended.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Cluster, type KubeObject, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import { toKubeconfig } from '../../infra/platforms/local/cluster/kubeconfig.ts';
import { run } from '../support/child.ts';
import type { TestControlPlane } from '../support/control-plane.ts';
import { runNode } from './node-process.ts';

const JOBS: Resource = { group: 'batch', version: 'v1', plural: 'jobs', kind: 'Job' };
const EVERY = 200;

export interface JobsOptions {
  readonly server: TestControlPlane;
  readonly cluster: Cluster;
  /** With the bundles, as `linkBundles` leaves them. */
  readonly folder: string;
  /** Addresses that no network of a cluster leads to here. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface EndedJob {
  readonly name: string;
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

interface JobSpec {
  readonly template: {
    readonly spec: {
      readonly serviceAccountName?: string;
      readonly containers: readonly [
        { readonly command: ReadonlyArray<string>; readonly env: ReadonlyArray<Variable> },
      ];
    };
  };
}

/** Runs each Job of the cluster once. */
export function runJobs(options: JobsOptions) {
  const ended: EndedJob[] = [];
  const seen = new Set<string>();
  let isOver = false;
  const loop = (async () => {
    for (; !isOver; await pause(EVERY)) {
      const jobs = await options.cluster.list(JOBS);
      for (const job of jobs.filter(({ metadata }) => !seen.has(metadata.uid ?? ''))) {
        seen.add(job.metadata.uid ?? '');
        ended.push(await runJob(options, job));
      }
    }
  })();
  return {
    ended,
    stop: async () => {
      isOver = true;
      await loop;
    },
  };
}

async function runJob(options: JobsOptions, job: KubeObject): Promise<EndedJob> {
  const { namespace = '', name } = job.metadata;
  // Written by the chart, and admitted by the API server.
  const { serviceAccountName, containers } = (job.spec as JobSpec).template.spec;
  const [{ command, env }] = containers;
  const environment: Record<string, string> = {};
  for (const variable of env) environment[variable.name] = await readVariable(options.cluster, namespace, variable);
  if (serviceAccountName !== undefined)
    environment.KUBECONFIG = await kubeconfigOf(options, namespace, serviceAccountName);
  const bundle = join(options.folder, (command.at(-1) ?? '').replace(/^dist\//, ''));
  const { code, stdout, stderr } = await runNode(bundle, [], { ...environment, ...options.environment });
  const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const types = code === 0 ? ['SuccessCriteriaMet', 'Complete'] : ['FailureTarget', 'Failed'];
  const at = { lastProbeTime: time, lastTransitionTime: time };
  const conditions = types.map((type) => ({ type, status: 'True', ...at }));
  const counts = code === 0 ? { succeeded: 1, completionTime: time } : { failed: 1 };
  const written = await options.cluster.patch(
    JOBS,
    namespace,
    name,
    { status: { startTime: time, ...counts, conditions } },
    'status',
  );
  if (!written.ok && written.refusal !== 'gone') throw new Error(`the status of Job ${name}: ${written.message}`);
  return { name, code, stdout, stderr };
}

async function readVariable(cluster: Cluster, namespace: string, { value = '', valueFrom }: Variable): Promise<string> {
  if (valueFrom === undefined) return value;
  const { name, key } = valueFrom.secretKeyRef;
  const data = ((await cluster.get(RESOURCES.secrets, namespace, name))?.data ?? {}) as Record<string, string>;
  return Buffer.from(data[key] ?? '', 'base64').toString();
}

async function kubeconfigOf({ server, folder }: JobsOptions, namespace: string, account: string): Promise<string> {
  const words = ['-n', namespace, 'create', 'token', account];
  const { stdout, stderr } = await run('kubectl', words, { KUBECONFIG: server.kubeconfig });
  if (stdout === '') throw new Error(stderr);
  const file = join(folder, `${namespace}-${account}.kubeconfig`);
  writeFileSync(file, toKubeconfig({ url: server.url, ca: server.ca, token: stdout.trim() }));
  return file;
}
