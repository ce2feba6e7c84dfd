// Estimates in place of a reply that is free and that no provider has given.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import type { createBudgetLeft } from '../caller/budget-left.ts';
import type { ClientContext } from '../request/request-log.ts';
import { limitsOf, type ReservedGrant } from '../spend/reserve.ts';
import type { Api } from '../wire/api.ts';
import { answerHeaders } from './respond.ts';

const ESTIMATED = { 'x-gateway-estimated': 'true' };

export function createEstimate({ estimate }: Api, learn: ReturnType<typeof createBudgetLeft>['learn']) {
  /** `err`: the failure, where the API has no estimates, or where the provider refuses the request itself. */
  return async function replyEstimate(
    reservation: ReservedGrant,
    { client, log }: ClientContext,
    failure: Failure,
  ): Promise<Result<void, Failure>> {
    if (estimate === undefined || failure.code === 'upstream_refused') return err(failure);
    const known = { ...log.context, ...(await learn(limitsOf(reservation))) };
    log.answered(200, 'complete');
    client.begin(200, { ...answerHeaders({}, known, undefined), ...ESTIMATED });
    client.end(JSON.stringify(estimate(reservation.grant.request)));
    return ok(undefined);
  };
}
