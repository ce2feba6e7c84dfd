// Where does the admission function of a test run: in this process, or as a bundle in real workerd?
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '#core/ports/cluster.ts';
import { type AdmissionDependencies, createAdmission } from '../../functions/admission/app.ts';
// Compiled with this file: the first review loads it, and the compiler of a busy test run takes longer than an API
// server waits.
import '../../functions/admission/handle.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { serve, type Tls } from '../../infra/runtime/node/serve.ts';
import { startWorkers } from '../platforms/miniflare.ts';
import { RECONCILE_TOKEN } from '../platforms/node-process.ts';
import { linkBundles } from '../support/shared-servers.ts';
import { SEGMENT } from './fixtures.ts';

/** How a client reaches an API server. */
export interface Api {
  readonly url: string;
  readonly token: string;
  /** PEM. */
  readonly ca: string;
}

export interface Place extends Api {
  /** For what the function needs on disk; gone after the test. */
  readonly folder: string;
  readonly tls: Tls;
  readonly cluster: Cluster;
  readonly more: Partial<AdmissionDependencies>;
}

export interface Deployment {
  /** What stands before /mutate and /validate. */
  readonly base: string;
  readonly reviewed: () => number;
  /** Stops the function, and lets it come back at the same address. */
  readonly down: () => Promise<() => Promise<void>>;
  readonly stop: () => Promise<void>;
}

export type Deploy = (place: Place) => Promise<Deployment>;

export const inNode: Deploy = async ({ cluster, tls, more }) => {
  const app = createAdmission({ ...nodeDependencies(), cluster, pathSecrets: [SEGMENT], ...more });
  let reviewed = 0;
  const fetch = (review: Request) => {
    reviewed += 1;
    return app.fetch(review);
  };
  const listen = (port: number) => serve({ fetch, host: '127.0.0.1', port, tls });
  let served = await listen(0);
  const down = async () => {
    const { port } = served;
    await served.close(100);
    return async () => {
      served = await listen(port);
    };
  };
  return { base: `${served.url}/${SEGMENT}`, reviewed: () => reviewed, down, stop: () => served.close(100) };
};

/** The bundle that is deployed to Cloudflare. */
export const inWorkerd: Deploy = async ({ folder, url, token, ca, tls }) => {
  const output = 'cloudflare/admission.mjs';
  await linkBundles(folder);
  const trusted = join(folder, 'api-server.pem');
  writeFileSync(trusted, ca);
  const bindings = { API_SERVER: url, API_TOKEN: token, PATH_SECRETS: SEGMENT, RECONCILE_TOKEN };
  const worker = { name: 'admission' as const, scriptPath: join(folder, output), bindings, services: {} };
  const listen = (port: number) => startWorkers([worker], trusted, { port, tls });
  let workers = await listen(0);
  const { origin, port } = new URL(workers.url);
  let before = 0;
  const answered = () => workers.printed().split('"message":"admission"').length - 1;
  const down = async () => {
    before += answered();
    await workers.stop();
    return async () => {
      workers = await listen(Number(port));
    };
  };
  return { base: `${origin}/${SEGMENT}`, reviewed: () => before + answered(), down, stop: () => workers.stop() };
};
