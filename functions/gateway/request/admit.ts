// Requests admitted to a model: caller, body and grant, in this order. The first refusal is the answer.
import type { Failure } from '#core/failure/failure.ts';
import { err, type Result } from '#core/failure/result.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import { type AccessMemory, createAuthorize, type Grant } from '../caller/access.ts';
import type { Authenticate } from '../caller/authenticate.ts';
import type { GatewayDeps } from '../deps.ts';
import type { Cooldowns } from '../targets/cooldown.ts';
import type { Api } from '../wire/api.ts';
import { createReadBody } from './body.ts';
import type { Room, Share } from './memory-budget.ts';
import type { RequestLog } from './request-log.ts';
import { createConfine } from './stored-responses.ts';

/** State that outlives a request, and that all APIs share. */
export interface RequestMemory {
  readonly room: Room;
  readonly access: AccessMemory;
  readonly cooldowns: Cooldowns;
}

export interface AdmitShared extends RequestMemory {
  readonly authenticate: Authenticate;
}

export function createAdmit(
  deps: Pick<GatewayDeps, 'clock' | 'snapshots' | 'hash' | 'mac' | 'timer'>,
  { authenticate, access, room }: Pick<AdmitShared, 'authenticate' | 'access' | 'room'>,
  api: Api,
) {
  const authorize = createAuthorize(access, api);
  const confine = createConfine(deps);
  const readBody = createReadBody(deps, room.limits);

  return async function admit(client: HttpExchange, log: RequestLog, share: Share): Promise<Result<Grant, Failure>> {
    const first = await authenticate(client, log.context, { known: (record) => log.caller(record) });
    if (!first.ok) return first;

    const body = await readBody({ client, share, key: first.value.key });
    if (!body.ok) return body;
    // A client may take longer than that to send the body: then the key's policy is read again, and counts as it is
    // now.
    const isFresh = deps.clock.now() < first.value.freshUntil;
    const caller = isFresh ? first : await authenticate(client, log.context, { before: first.value.waited });
    if (!caller.ok) return caller;
    const request = api.toRequest(body.value, client);
    if (!request.ok) return request;
    if (!share.take(request.value.sent.memberBytes, 'all')) return err({ code: 'overloaded' });

    const { model, stream } = request.value;
    const snapshot = deps.snapshots.current();
    if (snapshot === undefined) return err({ code: 'no_healthy_target', model });
    const confined = confine(request.value, caller.value, snapshot);
    if (!confined.ok) return confined;
    const grant = authorize(caller.value, confined.value, snapshot);
    if (!grant.ok) return grant;
    log.model(model, stream);
    log.context.chargedScopes = grant.value.chargedScopes;
    return grant;
  };
}
