// Of which type is an instance's workload? `Auto` is decided once; a failed discovery never flips it (DESIGN 6).
import type { KubeObject } from '#core/ports/cluster.ts';
import { reasonOf } from '#core/reason.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { Problem } from '../problem.ts';
import { PARTS, type WorkloadType } from '../workload/parts.ts';
import type { Look } from './look.ts';

export type Decision = { readonly type: WorkloadType } | { readonly undecided: Problem };

/** Where the platform serves instances itself, it serves those of type `Auto`. What `status` says of an earlier decision holds. */
export async function decideType(look: Look, object: GatewayInstance): Promise<Decision> {
  const { type } = object.spec.workload;
  if (type !== 'Auto') return { type };
  if (look.deps.platform.servedAt(object as unknown as KubeObject) !== undefined) return { type: 'Local' };
  const before = object.status?.workloadType;
  if (before === 'Knative' || before === 'Deployment') return { type: before };
  const offered = await offersKnative(look);
  if (typeof offered === 'boolean') return { type: offered ? 'Knative' : 'Deployment' };
  const message = `whether Knative is installed could not be found out, so nothing was chosen yet (${offered.why}): the next sweep asks again; or set spec.workload.type`;
  return { undecided: { reason: 'DiscoveryFailed', message } };
}

/** Asked once in a run. */
export async function offersKnative({ deps, discovered }: Look): Promise<boolean | { readonly why: string }> {
  discovered.knative ??= deps.cluster
    .serves(PARTS.KnativeService)
    .catch((error: unknown) => ({ why: reasonOf(error) }));
  return discovered.knative;
}
