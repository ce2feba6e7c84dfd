// Is it an API server that asks? Its token says so, where API servers send one (KEP-6060).
import type { Log, Metrics } from '#core/ports/clock.ts';
import type { TokenProblem, TokenVerifier } from '#core/ports/token.ts';
import { reasonOf } from '#core/reason.ts';
import { isMap } from '#crds/shapes.ts';

export interface CallerDeps {
  readonly verifier: TokenVerifier;
  /** `report`: everybody is answered, and it is logged and counted who could not be verified. `enforce`: those get 401. */
  readonly mode: 'report' | 'enforce';
  /** What stands before the path in the webhook's address: `https://NAME.NAMESPACE.svc:PORT` or the origin of its URL. */
  readonly audience: string;
  readonly log: Log;
  readonly metrics: Metrics;
}

export type CallerProblem =
  | TokenProblem
  | 'NoToken' //       the caller sent none
  | 'NotAttested' //   a good token, but not one that an API server gets for a webhook
  | 'OtherGroup' //    attested for reviews of another API group
  | 'KeysUnreadable'; // nothing can be said of any token (`report` only; else 500)

/** `refused`: answer 401 and judge nothing. */
export type Verified = 'go-on' | 'refused';

export interface Caller {
  /** Looks at the token alone, so that nobody's body is read before; then asks what it may be about. */
  meet(request: Request): Promise<Met>;
}

export type Met =
  | { readonly outcome: 'refused' }
  /** Whether the caller may send reviews of this API group; to be asked once for every review. */
  | { readonly outcome: 'go-on'; readonly mayReview: (group: string) => Verified };

/**
 * | the request has | report | enforce |
 * |---|---|---|
 * | a token of the issuer for this very address, attested for the review's group or for all (`*`) | counted | counted |
 * | anything else | logged, counted, answered | logged, counted, 401 |
 *
 * The audience is the webhook's whole address, as the API server derives it: a token for /validate is none for /mutate.
 */
export function createCaller({ verifier, mode, audience, log, metrics }: CallerDeps): Caller {
  const count = (result: string) => metrics.add('gateway_operator_admission_callers_total', { result });
  const tell = (problem: CallerProblem, more: Readonly<Record<string, unknown>>): Verified => {
    count(problem);
    log.warn('caller not verified', { problem, mode, ...more });
    return mode === 'enforce' ? 'refused' : 'go-on';
  };
  const unverified = (problem: CallerProblem): Met => {
    const outcome = tell(problem, {});
    return outcome === 'refused' ? { outcome } : { outcome, mayReview: () => 'go-on' };
  };

  /** Undefined: unknown, which only `report` lives with. `enforce` throws: a 500 lets the failure policy decide. */
  const verify = async (token: string, address: string) => {
    try {
      return await verifier.verify(token, address);
    } catch (error) {
      if (tell('KeysUnreadable', { error: reasonOf(error) }) === 'refused') throw error;
      return undefined;
    }
  };

  return {
    meet: async (request) => {
      const token = bearerOf(request.headers.get('authorization'));
      if (token === undefined) return unverified('NoToken');
      const verdict = await verify(token, `${audience}${new URL(request.url).pathname}`);
      if (verdict === undefined) return { outcome: 'go-on', mayReview: () => 'go-on' };
      if (!verdict.ok) return unverified(verdict.problem);
      const { subject, kubernetes } = verdict.claims;
      const attested = attestedGroups(kubernetes);
      const mayReview = (group: string): Verified => {
        if (attested.length === 0) return tell('NotAttested', { subject });
        if (!attested.includes(group) && !attested.includes(EVERY_GROUP)) {
          return tell('OtherGroup', { subject, group, attested });
        }
        count('verified');
        return 'go-on';
      };
      return { outcome: 'go-on', mayReview };
    },
  };
}

/** What kube-apiserver itself may have attested: reviews of any group. */
const EVERY_GROUP = '*';

/** `kubernetes.io` → `attestations.admissionReviewAPIGroups`; anything of another shape attests nothing. */
function attestedGroups(kubernetes: unknown): ReadonlyArray<string> {
  const attestations = isMap(kubernetes) ? kubernetes.attestations : undefined;
  const groups = isMap(attestations) ? attestations.admissionReviewAPIGroups : undefined;
  return Array.isArray(groups) ? groups.filter((group): group is string => typeof group === 'string') : [];
}

/** RFC 6750: the scheme in any case, one blank, the token. */
function bearerOf(header: string | null): string | undefined {
  const [, token] = /^bearer +([^\s]+) *$/i.exec(header ?? '') ?? [];
  return token;
}
