// The three functions as Workers in workerd, each beside the least Worker there is, in a process of miniflare of its
// own.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gatewayWorker } from '../platforms/gateway-worker.ts';
import { startWorkers, type WorkerOfTest } from '../platforms/miniflare.ts';
import { ADMISSION_PATH, RECONCILE_TOKEN } from '../platforms/node-process.ts';
import type { TestWorld } from '../platforms/world.ts';
import { startRedis } from '../support/redis.ts';
import { startUpstash } from '../support/upstash.ts';

/** A function, or what it is measured against. */
export interface Program {
  readonly name: string;
  readonly start: () => Promise<{ readonly url: string; stop(): Promise<unknown> }>;
  /** What its first answer is asked for. */
  readonly first: (url: string) => Promise<Response>;
}

export interface DeployOptions {
  /** Pays a completion of the gateway at that address. */
  readonly makeCall: (url: string) => Promise<Response>;
  /** The sample's. */
  readonly snapshot: string;
}

/** Needs a Redis, which stands behind a REST interface as Upstash's does. */
export async function prepareWorkers(world: TestWorld, { makeCall, snapshot }: DeployOptions) {
  const redis = await startRedis();
  const upstash = await startUpstash(redis);
  const { folder } = world;
  const [ca, bare] = [join(folder, 'ca.pem'), join(folder, 'bare-worker.mjs')];
  writeFileSync(ca, world.certificates.ca);
  writeFileSync(bare, "export default { fetch: () => new Response('ok') };");
  const common = { API_SERVER: world.url, API_TOKEN: world.token, RECONCILE_TOKEN };
  const one = (name: WorkerOfTest['name'], more: Partial<WorkerOfTest> = {}) => {
    const scriptPath = join(folder, `cloudflare/${name}.mjs`);
    return () => startWorkers([{ name, scriptPath, services: {}, bindings: common, ...more }], ca);
  };
  const snapshots = { 'default/sample': snapshot };
  const gateway = () => startWorkers([gatewayWorker({ world, objects: world.sample(), upstash, snapshots })], ca);
  const resync = (url: string) =>
    fetch(url, { method: 'POST', headers: { authorization: `Bearer ${RECONCILE_TOKEN}` } });
  const programs: ReadonlyArray<Program> = [
    { name: 'bare Worker, a fixed answer', start: one('admission', { scriptPath: bare }), first: fetch },
    {
      name: 'admission, ready',
      start: one('admission', { bindings: { ...common, PATH_SECRETS: ADMISSION_PATH } }),
      first: (url) => fetch(`${url}/readyz`),
    },
    {
      name: 'reconcile, a whole resync',
      start: one('reconcile', { bindings: { ...common, GATEWAY_PROCESSES: 'one' } }),
      first: resync,
    },
    { name: 'gateway, a charged completion', start: gateway, first: makeCall },
  ];
  const stop = async () => {
    upstash.stop();
    await redis.stop();
  };
  return { programs, stop };
}
