// Which objects should run an instance's gateway, and what do they say? Pure; JSON throughout.
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import { autoscaler, deployment, disruptionBudget, service } from './deployment.ts';
import { differences } from './differences.ts';
import { knativeService } from './knative.ts';
import { isOurPart, laterVersion, type PartName, type WorkloadType } from './parts.ts';
import type { Order } from './pod.ts';

/** `hash` is of the object: what the annotation says of one that was applied. */
export interface WantedPart {
  readonly part: PartName;
  readonly object: KubeObject;
  readonly hash: string;
}

export function wantedParts(type: WorkloadType, order: Order, hash: Hash): WantedPart[] {
  const scales = autoscaler(order);
  const objects: Readonly<Partial<Record<PartName, KubeObject>>> =
    type === 'Deployment'
      ? {
          Deployment: deployment(order),
          Service: service(order),
          PodDisruptionBudget: disruptionBudget(order),
          ...(scales === undefined ? {} : { HorizontalPodAutoscaler: scales }),
        }
      : type === 'Knative'
        ? { KnativeService: knativeService(order) }
        : {};
  return Object.entries(objects).map(([part, object]) => ({
    part: part as PartName,
    object,
    hash: short(hash, object),
  }));
}

/** A part as the cluster has it, held against what is wanted of it. */
export type PartView =
  | { readonly there: false }
  | {
      readonly there: true;
      readonly object: KubeObject;
      readonly ours: boolean;
      /** The version of the operator that wrote it, where that is later than ours. */
      readonly later?: string;
      /** Where it is not as wanted. */
      readonly differs: readonly string[];
      /** Of where, and what is there in its place. Empty: it is as wanted. */
      readonly differsHash: string;
      /** This is what the API server made of what we have just applied. */
      readonly answered: boolean;
    };

export function viewPart(
  object: KubeObject | undefined,
  wanted: WantedPart | undefined,
  {
    instance,
    version,
    hash,
    answered = false,
  }: Pick<Order, 'instance' | 'version'> & { readonly hash: Hash; readonly answered?: boolean },
): PartView {
  if (object === undefined) return { there: false };
  const found = wanted === undefined ? [] : differences(object, wanted.object);
  const differsHash = found.length === 0 ? '' : short(hash, found);
  const differs = found.map(({ path }) => path);
  const later = laterVersion(object, version);
  const view = { there: true, object, ours: isOurPart(object, instance), differs, differsHash, answered } as const;
  return later === undefined ? view : { ...view, later };
}

const short = (hash: Hash, value: unknown): string => hash(JSON.stringify(value)).slice(0, 16);
