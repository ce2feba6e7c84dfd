// What does a gateway learn that outlives a request? Plain data, so that it also outlives one where I/O does not (Workers).

import type { GatewayDeps } from './deps.ts';
import { createHealth, type Health } from './health.ts';
import { createPolicyMemory, type PolicyMemory } from './policy-cache.ts';

export interface GatewayMemory {
  readonly policies: PolicyMemory;
  readonly health: Health;
}

/** One for as long as the process, or the isolate, lives. */
export function createMemory(deps: Pick<GatewayDeps, 'clock' | 'log' | 'metrics'>): GatewayMemory {
  return { policies: createPolicyMemory(), health: createHealth(deps) };
}
