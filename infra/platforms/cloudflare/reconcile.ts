// The reconciler as a Worker: a cron trigger every minute, and triggers of the admission webhook.
import { type Bindings, orFail } from '../../runtime/fetch/platform.ts';
import { createReconcileFetch } from '../../runtime/fetch/reconcile.ts';

export default {
  /** For service bindings only: give the Worker no public route. */
  fetch: (request: Request, bindings: Bindings) =>
    orFail('reconcile', () => createReconcileFetch(bindings).fetch(request)),
  scheduled: (_: unknown, bindings: Bindings) => createReconcileFetch(bindings).resync(),
};
