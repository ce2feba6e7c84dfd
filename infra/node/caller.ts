// Which callers does the admission function let ask, as its environment says?
import type { KubeTransport } from '#adapters/kubernetes/transport.ts';
import { createIssuerKeys } from '#adapters/token/issuer.ts';
import { createTokenVerifier } from '#adapters/token/verifier.ts';
import type { Clock, Log, Metrics } from '#core/ports/clock.ts';
import { type Caller, createCaller } from '../../functions/admission/caller.ts';
import type { AdmissionEnvironment } from '../config/environments.ts';

type Wanted = Pick<AdmissionEnvironment, 'CALLER_TOKENS' | 'CALLER_AUDIENCE' | 'CALLER_ISSUER'>;

export interface CallerDependencies {
  readonly request: KubeTransport;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The member of the function's dependencies; none where tokens are not asked for. Holds the issuer's keys, so it is made once. */
export function callerOf(
  { CALLER_TOKENS: mode, CALLER_AUDIENCE: audience, CALLER_ISSUER: issuer }: Wanted,
  { request, clock, log, metrics }: CallerDependencies,
): { readonly caller?: Caller } {
  if (mode === 'off' || audience === undefined) return {};
  const keys = createIssuerKeys({ request, clock, ...(issuer === undefined ? {} : { issuer }) });
  const verifier = createTokenVerifier({ keys, clock });
  return { caller: createCaller({ verifier, mode, audience: audience.replace(/\/+$/, ''), log, metrics }) };
}
