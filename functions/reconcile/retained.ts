// Does a claim outlive its object, and by which Secret? (`deletionPolicy: Retain`.)
import type { KeyPolicy, ScopePolicy } from '#core/ports/policy.ts';

/** Name of the Secret, in the namespace of the claim's holder, that keeps a retained key alive. */
export function retainedSecret(policy: ScopePolicy | KeyPolicy | undefined): string | undefined {
  return policy !== undefined && 'retained' in policy ? policy.retained : undefined;
}
