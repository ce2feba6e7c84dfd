// The admission function as a fetch handler: on a public address, so its path starts with an unguessable segment.
import type { ExecutionContext } from 'hono';
import { createAdmission } from '../../../functions/admission/app.ts';
import { AdmissionBindings } from '../config/bindings.ts';
import { readEnvironment } from '../config/variable.ts';
import { createReviewRecord } from '../triggers/review-record.ts';
import { createTrigger } from '../triggers/trigger.ts';
import { type Bindings, NO_METRICS, workerCluster, workerDependencies, workerLog } from './platform.ts';

/** Throws one error that lists every binding that is missing or malformed. */
export function createAdmissionFetch(bindings: Bindings) {
  const environment = readEnvironment(AdmissionBindings, bindings);
  const { RECONCILE: reconcile } = environment;
  const [token] = environment.RECONCILE_TOKEN;
  const app = createAdmission({
    ...workerDependencies(),
    cluster: workerCluster(environment),
    pathSecrets: environment.PATH_SECRETS,
    secretPrefixes: environment.SECRET_METADATA_PREFIXES ?? [],
    exemptUsers: environment.OWN_USERS,
    record: createReviewRecord({
      log: workerLog('admission'),
      metrics: NO_METRICS,
      trigger:
        reconcile && createTrigger({ address: 'https://reconcile/', token, send: (event) => reconcile.fetch(event) }),
    }),
  });
  return {
    fetch: (request: Request, _?: unknown, execution?: ExecutionContext) => app.fetch(request, bindings, execution),
  };
}
