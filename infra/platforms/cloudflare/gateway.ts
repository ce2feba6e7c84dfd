// The gateway of one instance as a Worker.
import { createGatewayFetch } from '../../runtime/fetch/gateway.ts';
import { type Bindings, type Execution, orFail } from '../../runtime/fetch/platform.ts';

export default {
  fetch: (request: Request, bindings: Bindings, execution: Execution) =>
    orFail('gateway', () => createGatewayFetch(bindings).fetch(request, bindings, execution)),
};
