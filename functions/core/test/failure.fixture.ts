// One example of every failure that a client can see; a new arm does not compile without one.
import type { Failure, FailureCode } from '../failure/failure.ts';

export const NOW = Date.UTC(2026, 10, 21, 12);

export const EXAMPLES: { readonly [Code in FailureCode]: Extract<Failure, { code: Code }> } = {
  invalid_api_key: { code: 'invalid_api_key' },
  expired_api_key: { code: 'expired_api_key', at: NOW },
  key_blocked: { code: 'key_blocked', kind: 'team', name: 'web' },
  model_access_denied: { code: 'model_access_denied', model: 'gpt', kind: 'key', name: 'billing' },
  model_not_found: { code: 'model_not_found', model: 'g"\n' },
  route_not_served: { code: 'route_not_served', model: 'gpt', path: '/embeddings' },
  model_not_priced: { code: 'model_not_priced', model: 'gpt' },
  budget_exceeded: {
    code: 'budget_exceeded',
    scope: { kind: 'user', name: 'alice@example.com' },
    limit: 12_500_000_000n,
    spent: 12_500_000_000n,
    duration: '30d',
    resetAt: NOW + 1500,
    now: NOW,
    needs: 1_200_000n,
  },
  budget_held: { code: 'budget_held', scope: { kind: 'key', name: 'billing' } },
  rate_limit_exceeded: {
    code: 'rate_limit_exceeded',
    scope: { kind: 'key', name: 'billing' },
    model: 'gpt',
    rate: 'requests',
    limit: 10,
    retryIn: 11_001,
  },
  invalid_request: { code: 'invalid_request', message: '"messages" must be an array.', param: 'messages' },
  request_too_large: { code: 'request_too_large', limit: 33_554_432 },
  overloaded: { code: 'overloaded' },
  upstream_refused: { code: 'upstream_refused', status: 422, message: 'Too hot.', param: 'temperature' },
  upstream_rate_limited: { code: 'upstream_rate_limited', retryAfter: 7 },
  upstream_error: { code: 'upstream_error' },
  upstream_timeout: { code: 'upstream_timeout' },
  no_healthy_target: { code: 'no_healthy_target', model: 'gpt' },
  ledger_unavailable: { code: 'ledger_unavailable', why: 'connection refused by db.internal:5432' },
  client_left: { code: 'client_left' },
  not_found: { code: 'not_found', path: '/embeddings' },
  method_not_allowed: { code: 'method_not_allowed', allow: 'POST' },
  upgrade_not_supported: { code: 'upgrade_not_supported' },
  internal_error: { code: 'internal_error' },
};
