// The reconcile function as a Worker: a cron trigger every minute, and triggers from admission.
import { type Bindings, orFail } from '../../runtime/fetch/platform.ts';
import { createReconcileFetch } from '../../runtime/fetch/reconcile.ts';

export default {
  /** Reached by service bindings only; give the Worker no public route. */
  fetch: (request: Request, bindings: Bindings) =>
    orFail('reconcile', () => createReconcileFetch(bindings).fetch(request)),
  scheduled: (_: unknown, bindings: Bindings) => createReconcileFetch(bindings).resync(),
};
