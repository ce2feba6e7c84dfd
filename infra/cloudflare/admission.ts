// The admission function as a Worker: on a public address, so its path starts with an unguessable segment.
import { createMetrics } from '#adapters/metrics.ts';
import { createAdmission } from '../../functions/admission/app.ts';
import { type WorkerEnvironment, workerCluster, workerDependencies, workerLog } from './worker.ts';

interface Environment extends WorkerEnvironment {
  /** Accepted path segments, separated by commas: two while one replaces the other. */
  readonly PATH_SECRETS: string;
  /** Where to post "look here" after an object was admitted. Absent: the schedule finds it. */
  readonly RECONCILE?: { fetch(request: Request): Promise<Response> };
}

type Execution = Parameters<ReturnType<typeof createAdmission>['fetch']>[2];

const metrics = createMetrics();

export default {
  fetch(request: Request, environment: Environment, execution: Execution): Response | Promise<Response> {
    const { RECONCILE: reconcile } = environment;
    const app = createAdmission({
      ...workerDependencies(),
      cluster: workerCluster(environment),
      log: workerLog('admission'),
      metrics,
      pathSecrets: environment.PATH_SECRETS.split(',').filter((part) => part !== ''),
      ...(reconcile === undefined ? {} : { hint: async (hint) => void (await reconcile.fetch(toEvent(hint))) }),
    });
    return app.fetch(request, environment, execution);
  },
};

/** A CloudEvent in binary mode, the shape of Knative's ApiServerSource in reference mode. */
function toEvent(reference: object): Request {
  return new Request('https://reconcile/', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': crypto.randomUUID(),
      'ce-source': '/admission',
      'ce-type': 'dev.gateway-operator.hint',
    },
    body: JSON.stringify(reference),
  });
}
