// The admission webhook as a Worker.
import type { ExecutionContext } from 'hono';
import { createAdmissionFetch } from '../../runtime/fetch/admission.ts';
import { type Bindings, orFail } from '../../runtime/fetch/platform.ts';

export default {
  fetch: (request: Request, bindings: Bindings, execution: ExecutionContext) =>
    orFail('admission', () => createAdmissionFetch(bindings).fetch(request, bindings, execution)),
};
