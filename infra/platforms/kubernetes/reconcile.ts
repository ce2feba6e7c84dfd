// The reconciler as a Node process: on plain Kubernetes and Knative.

import { setTimeout as pause } from 'node:timers/promises';
import { createBackends } from '#adapters/backends/backends.ts';
import { openCounterStore } from '#adapters/backends/open-counter-store.ts';
import { createIssuer } from '#adapters/certificates/issuer.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createFetch, createProxyFor } from '#adapters/process/proxies.ts';
import { probeShared } from '#adapters/redis/probe.ts';
import { createReconciler } from '../../../functions/reconcile/app.ts';
import { LIFETIMES } from '../../../functions/reconcile/certificates/renewal.ts';
import { PROCESS_LIMITS } from '../../../functions/reconcile/limits.ts';
import { ReconcileEnvironment } from '../../runtime/config/environments.ts';
import { RELEASE_VERSION } from '../../runtime/config/release.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import { openApi } from '../../runtime/node/api-access.ts';
import { maintainDays } from '../../runtime/node/ledger-days.ts';
import { replaceNameLookup } from '../../runtime/node/name-lookup.ts';
import { MAX_CONNECTIONS, main, openFunction } from '../../runtime/node/process.ts';
import { createReadiness } from '../../runtime/node/readiness.ts';
import { objectMemory, replyMemory } from '../../runtime/node/reply-memory.ts';
import { createStoreMaintenance } from '../../runtime/node/store-maintenance.ts';
import { resyncAtStart } from '../../runtime/triggers/at-start.ts';
import { requireToken } from '../../runtime/triggers/token.ts';

/** Loaded only if there is an archive, with its libraries. */
const loadArchive = () => import('../../runtime/node/open-archive.ts');

main(async () => {
  replaceNameLookup();
  const environment = readEnvironment(ReconcileEnvironment, process.env);
  const { run, ...parts } = await openFunction('reconcile', environment);
  const { log } = parts;
  const api = await openApi(environment);
  const fetch = createFetch(createProxyFor(environment));
  const archive = environment.ARCHIVE_URL && (await loadArchive()).openLedgerArchive(environment, { ...parts, fetch });
  const { clear, flush } = createStoreMaintenance({ open: openCounterStore, ...parts, fetch });
  const backends = createBackends({
    clock: parts.clock,
    maxReplyBytes: replyMemory(),
    openDatabase: (connection) => createDatabase(connection, { log }),
    clear,
    flush,
    maintain: async (database, whole) => {
      // An archive drops days itself.
      const kept = archive === undefined ? environment.RETAIN_DAYS : undefined;
      await maintainDays(kept, database, { clock: parts.clock, log });
      archive?.add(whole);
    },
    probeShared: (connection, instanceUid) => probeShared(connection, instanceUid, fetch),
  });
  const platform = {
    servedAt: () => undefined,
    gatewayImage: environment.GATEWAY_IMAGE,
    gatewayPullSecrets: environment.GATEWAY_PULL_SECRETS ?? [],
    secretPrefixes: environment.SECRET_METADATA_PREFIXES ?? [],
    version: RELEASE_VERSION,
    manyProcesses: environment.GATEWAY_PROCESSES === 'many',
    inCluster: environment.KUBECONFIG === undefined,
  };
  const { ADMISSION_SERVICE: service, PATH_SECRETS: [path] = [] } = environment;
  const app = createReconciler({
    ...parts,
    cluster: api.cluster,
    backends,
    platform,
    limits: { ...PROCESS_LIMITS, objectBytes: Math.min(PROCESS_LIMITS.objectBytes, objectMemory()) },
    readiness: createReadiness(api.cluster, parts.clock),
    // Without a Service, cert-manager or a public authority issues the certificate of the webhook.
    ...(service && { certificates: { issuer: createIssuer(), service, lifetimes: LIFETIMES, ...(path && { path }) } }),
  });
  const answer = async (request: Request): Promise<Response> => {
    const response = await app.fetch(request);
    // No request waits for it.
    void archive?.work();
    return response;
  };
  await run({ fetch: requireToken(environment.RECONCILE_TOKEN, answer), maxConnections: MAX_CONNECTIONS }, async () => {
    await archive?.stop();
    await backends.close().finally(api.close);
  });
  if (environment.RESYNC_AT_START === 'true') await resyncAtStart({ fetch: answer, log, now: Date.now, pause });
});
