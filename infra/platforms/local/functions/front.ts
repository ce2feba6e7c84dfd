// The common address of all gateways of the stack: `/{namespace}/{name}/…` leads to the gateway of that instance.

import { reasonOf } from '../../../../functions/core/failure/error-text.ts';
import type { Failure } from '../../../../functions/core/failure/failure.ts';
import type { HttpHandler } from '../../../../functions/core/ports/http-exchange.ts';
import type { Ids } from '../../../../functions/core/ports/ids.ts';
import type { Log } from '../../../../functions/core/ports/telemetry.ts';
import { sendFailure, sendText } from '../../../../functions/gateway/reply/respond.ts';
import { toRequestContext } from '../../../../functions/gateway/request/request-context.ts';
import type { OpenGateway } from '../../../runtime/node/gateway.ts';
import type { Gateways } from './gateways.ts';

export interface FrontDependencies {
  /** The part of the gateways that passing requests on needs. */
  readonly gateways: {
    find(...at: Parameters<Gateways['find']>): Promise<Pick<OpenGateway, 'handle'> | 'absent' | 'unavailable'>;
  };
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: { render(): Promise<string> };
}

/** One server for all instances; health and metrics are at the root. Its errors have the form of a gateway's errors. */
export function gatewayFront({ gateways, ids, log, metrics }: FrontDependencies): HttpHandler {
  return async function front(client) {
    const { method, path } = client;
    if (method === 'GET' && (path === '/healthz' || path === '/readyz')) return sendText(client, 200, 'ok');
    if (method === 'GET' && path === '/metrics') return sendText(client, 200, await metrics.render());
    const context = toRequestContext(client, ids);
    try {
      const at = addressIn(path);
      const runtime = at === undefined ? 'nothing' : await gateways.find(at.namespace, at.name);
      if (typeof runtime === 'string') sendFailure(client, failureOf(runtime, path), context);
      else await runtime.handle(client, at?.below);
    } catch (error) {
      log.error('a request failed with an internal error', { requestId: context.requestId, why: reasonOf(error) });
      if (client.hasBegun()) client.destroy();
      else sendFailure(client, { code: 'internal_error' }, context);
    }
  };
}

function failureOf(found: 'absent' | 'unavailable' | 'nothing', path: string): Failure {
  // Key values of an instance that does not exist are unknown (DESIGN 10, Keys).
  if (found === 'absent') return { code: 'invalid_api_key' };
  if (found === 'unavailable') return { code: 'ledger_unavailable', why: 'the gateway is not up' };
  return { code: 'not_found', path, base: '/{namespace}/{name}' };
}

/** The instance that a path names, and the path below it. A client may have written the names with escapes. */
function addressIn(path: string) {
  const [, namespace = '', name = '', ...rest] = path.split('/');
  const below = `/${rest.join('/')}`;
  // A base address without its instance would otherwise be refused as an unknown key.
  if (below === '/' || path === '/v1/chat/completions') return undefined;
  try {
    return { namespace: decodeURIComponent(namespace), name: decodeURIComponent(name), below };
  } catch {
    return undefined;
  }
}
