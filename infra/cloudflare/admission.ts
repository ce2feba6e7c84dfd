// The admission function as a Worker: on a public address, so its path starts with an unguessable segment.
import { createMetrics } from '#adapters/metrics.ts';
import type { Clock, Log } from '#core/ports/clock.ts';
import { createAdmission } from '../../functions/admission/app.ts';
import { AdmissionBindings } from '../config/bindings.ts';
import { readEnvironment } from '../config/read-environment.ts';
import { callerOf } from '../node/caller.ts';
import { createHint } from '../triggers/hint.ts';
import { orFail, workerCluster, workerDependencies, workerLog, workerTransport } from './worker.ts';

interface Bindings extends Readonly<Record<string, unknown>> {
  /** Where to post "look here" after an object was admitted. Absent: the schedule finds it. */
  readonly RECONCILE?: { fetch(request: Request): Promise<Response> };
}

type Execution = Parameters<ReturnType<typeof createAdmission>['fetch']>[2];

const metrics = createMetrics();

/** The issuer's keys outlive a request; by everything that they depend on, so at most one in practice. */
const callers = new Map<string, ReturnType<typeof callerOf>>();

export default {
  fetch: (request: Request, bindings: Bindings, execution: Execution) =>
    orFail('admission', () => createApp(bindings).fetch(request, bindings, execution)),
};

function createApp(bindings: Bindings): ReturnType<typeof createAdmission> {
  const { RECONCILE: reconcile } = bindings;
  const environment = readEnvironment(AdmissionBindings, bindings);
  const dependencies = workerDependencies();
  const log = workerLog('admission');
  return createAdmission({
    ...dependencies,
    cluster: workerCluster(environment),
    log,
    metrics,
    ...keptCaller(environment, { clock: dependencies.clock, log }),
    pathSecrets: environment.PATH_SECRETS,
    ...(reconcile === undefined ? {} : { hint: createHint('https://reconcile/', (event) => reconcile.fetch(event)) }),
  });
}

function keptCaller(
  environment: AdmissionBindings,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): ReturnType<typeof callerOf> {
  const { API_SERVER, API_TOKEN, CALLER_TOKENS, CALLER_AUDIENCE, CALLER_ISSUER } = environment;
  const key = JSON.stringify([API_SERVER, API_TOKEN, CALLER_TOKENS, CALLER_AUDIENCE, CALLER_ISSUER]);
  const kept =
    callers.get(key) ?? callerOf(environment, { request: workerTransport(environment), clock, log, metrics });
  callers.set(key, kept);
  return kept;
}
