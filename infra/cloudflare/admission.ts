// The admission function as a Worker: on a public address, so its path starts with an unguessable segment.
import { createMetrics } from '#adapters/metrics.ts';
import { createAdmission } from '../../functions/admission/app.ts';
import { AdmissionBindings } from '../config/bindings.ts';
import { readEnvironment } from '../config/variable.ts';
import { createHint } from '../triggers/hint.ts';
import { createReviewRecord } from '../triggers/review-record.ts';
import { orFail, workerCluster, workerDependencies, workerLog } from './worker.ts';

interface Bindings extends Readonly<Record<string, unknown>> {
  /** Where to post "look here" after an object was admitted. Absent: the schedule finds it. */
  readonly RECONCILE?: { fetch(request: Request): Promise<Response> };
}

type Execution = Parameters<ReturnType<typeof createAdmission>['fetch']>[2];

const metrics = createMetrics();

export default {
  fetch: (request: Request, bindings: Bindings, execution: Execution) =>
    orFail('admission', () => createApp(bindings).fetch(request, bindings, execution)),
};

function createApp(bindings: Bindings): ReturnType<typeof createAdmission> {
  const { RECONCILE: reconcile } = bindings;
  const environment = readEnvironment(AdmissionBindings, bindings);
  const [token] = environment.RECONCILE_TOKEN;
  return createAdmission({
    ...workerDependencies(),
    cluster: workerCluster(environment),
    pathSecrets: environment.PATH_SECRETS,
    record: createReviewRecord({
      log: workerLog('admission'),
      metrics,
      hint: reconcile && createHint({ address: 'https://reconcile/', token, send: (event) => reconcile.fetch(event) }),
    }),
  });
}
