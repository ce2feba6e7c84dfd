// Admission of a request to a model: caller, body and grant, in this order. The first refusal is the answer.
import type { Failure } from '#core/failure/failure.ts';
import { err, type Result } from '#core/failure/result.ts';
import { type AccessMemory, createAuthorize, type Grant } from '../caller/access.ts';
import type { Authenticate, Caller } from '../caller/authenticate.ts';
import { chargedScopesOf, type RequestFailure } from '../caller/remaining-limits.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { Api } from '../wire/api.ts';
import type { ModelRequest } from '../wire/request.ts';
import { createReadBody } from './body.ts';
import type { MemoryLimits } from './memory-budget.ts';
import type { ClientContext } from './request-log.ts';
import { createCheckStoredState } from './stored-responses.ts';

interface AdmitDependencies extends Pick<GatewayDependencies, 'clock' | 'snapshots' | 'hash' | 'mac' | 'timer'> {
  readonly authenticate: Authenticate;
  readonly access: AccessMemory;
  readonly limits: MemoryLimits;
}

export function createAdmit(deps: AdmitDependencies, api: Api) {
  const { authenticate, access, limits } = deps;
  const authorize = createAuthorize(access, api);
  const checkStoredState = createCheckStoredState(deps);
  const readBody = createReadBody(deps, limits);

  return async function admit({ client, log, share }: ClientContext): Promise<Result<Grant, RequestFailure>> {
    const authenticated = authenticate(client, { onRecord: (record) => log.addCaller(record) });
    // Even the await of a value takes a turn of the queue.
    const first = authenticated instanceof Promise ? await authenticated : authenticated;
    if (!first.ok) return first;
    const chargedScopes = chargedScopesOf(first.value);
    const body = await readBody({ client, share, key: first.value.key });
    const request = body.ok ? requestOf(body.value, { client, share }) : body;
    if (!request.ok) return err({ failure: request.failure, chargedScopes });
    if (share.isLarge) {
      // The reservation reads all letters.
      request.value.body.releaseText();
      await share.turn();
    }
    // When the body has been read, the policy of the key may no longer be fresh. Then the policy is read again, and the
    // new one counts.
    const isFresh = deps.clock.now() < first.value.freshUntil;
    const caller = isFresh ? first : await authenticate(client, { databaseTime: first.value.databaseTime });
    if (!caller.ok) return err({ chargedScopes, ...caller.failure });
    const grant = grantOf(caller.value, request.value);
    if (!grant.ok) return err({ failure: grant.failure, chargedScopes: chargedScopesOf(caller.value) });
    const { model, stream } = grant.value.request;
    log.addModel(model, stream);
    return grant;
  };

  function requestOf(
    bytes: Uint8Array,
    { client, share }: Pick<ClientContext, 'client' | 'share'>,
  ): Result<ModelRequest, Failure> {
    const request = api.toRequest(bytes, client);
    return !request.ok || share.take(request.value.body.memberBytes) ? request : err({ code: 'overloaded' });
  }

  function grantOf(caller: Caller, request: ModelRequest): Result<Grant, Failure> {
    const snapshot = deps.snapshots.current();
    if (snapshot === undefined) return err({ code: 'no_healthy_target', model: request.model });
    const checked = checkStoredState(request, caller, snapshot);
    return checked.ok ? authorize(caller, checked.value, snapshot) : checked;
  }
}
