// What runs an instance's gateway, and what should?
import type { StoreConnection } from '#core/ports/backends.ts';
import { ClusterError } from '#core/ports/cluster.ts';
import { reasonOf } from '#core/reason.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { ReconcileDeps } from '../deps.ts';
import type { Problem, Reached } from '../problem.ts';
import { PARTS, PARTS_OF, type PartName, partName, type WorkloadType } from '../workload/parts.ts';
import type { WorkloadView } from '../workload/view.ts';
import { type PartView, viewPart, type WantedPart, wantedParts } from '../workload/wanted.ts';
import type { SnapshotView } from '../world.ts';
import type { Look } from './look.ts';
import { type Decision, offersKnative } from './workload-type.ts';

export interface Found {
  readonly decision: Decision;
  readonly snapshot: SnapshotView;
  /** Its type, or why its Secret does not tell. */
  readonly store: StoreConnection['type'] | Problem;
  readonly storeHealth: Reached;
  /** What is wrong with the database's Secret. */
  readonly database: Problem | undefined;
  /** Of the Secrets of database and store. */
  readonly connections: string;
}

export async function observeWorkload(look: Look, object: GatewayInstance, found: Found): Promise<WorkloadView> {
  const { generation } = object.metadata;
  const { decision } = found;
  const type = 'type' in decision ? decision.type : undefined;
  const withoutKnative = type === 'Knative' && (await offersKnative(look)) === false;
  const held = 'undecided' in decision ? decision.undecided : whyHeld(found, withoutKnative);
  const wanted = type === undefined || held !== undefined ? [] : wantedFor(type, look, object, found);
  const own = type === undefined || withoutKnative ? [] : PARTS_OF[type];
  try {
    const mine = await readParts(look, object, own, wanted);
    const others = await readOthers(look, object, type);
    return { generation, type, held, wanted, parts: new Map([...others, ...mine]) };
  } catch (error) {
    if (!(error instanceof ClusterError && error.status === 403)) throw error;
    const message = `what runs the gateway may not be read: ${reasonOf(error)}: apply the operator's access.yaml of this version`;
    const forbidden = { reason: 'WorkloadUnreadable', message };
    return { generation, type, held: forbidden, wanted: [], parts: new Map() };
  }
}

/**
 * Pods mount the Secrets of database and store when they start, and read them then: while one of these is missing a new
 * Pod would not come up, so what runs is left as it is. The same while the store may not be used as it would be.
 */
function whyHeld({ database, store, storeHealth }: Found, withoutKnative: boolean): Problem | undefined {
  if (withoutKnative) {
    const message =
      'Knative Serving is not installed (the cluster serves no serving.knative.dev/v1): install it, or set spec.workload.type to Deployment';
    return { reason: 'KnativeNotInstalled', message };
  }
  if (database !== undefined) return database;
  if (typeof store !== 'string') return store;
  return !storeHealth.ok && storeHealth.reason === 'StoreNotShared' ? storeHealth : undefined;
}

function wantedFor(
  type: WorkloadType,
  { deps }: Look,
  instance: GatewayInstance,
  { snapshot, store, connections }: Found,
): WantedPart[] {
  if (typeof store !== 'string') return [];
  const { gatewayImage: image, version } = deps.platform;
  return wantedParts(type, { instance, snapshot, store, connections, image, version }, deps.hash);
}

async function readParts(
  { deps }: Look,
  instance: GatewayInstance,
  parts: readonly PartName[],
  wanted: readonly WantedPart[],
): Promise<Array<readonly [PartName, PartView]>> {
  return Promise.all(parts.map(async (part) => [part, await readPart(deps, instance, part, wanted)] as const));
}

/** As the cluster has it now. */
export async function readPart(
  { cluster, hash, platform }: ReconcileDeps,
  instance: GatewayInstance,
  part: PartName,
  wanted: readonly WantedPart[],
): Promise<PartView> {
  const { namespace, name } = instance.metadata;
  const object = await cluster.get(PARTS[part], namespace, partName(part, name));
  return viewPart(object, wantedOf(part, wanted), { instance, hash, version: platform.version });
}

export const wantedOf = (part: PartName, wanted: readonly WantedPart[]): WantedPart | undefined =>
  wanted.find((one) => one.part === part);

/** What is left of another type: the part that runs it goes last, so while that is there the rest is looked for. */
async function readOthers(look: Look, instance: GatewayInstance, type: WorkloadType | undefined) {
  const found: Array<readonly [PartName, PartView]> = [];
  for (const other of ['Deployment', 'Knative'] as const) {
    if (other === type || type === undefined) continue;
    // What cannot be found out is looked for again by the next sweep.
    if (other === 'Knative' && (await offersKnative(look)) !== true) continue;
    const [first, ...rest] = PARTS_OF[other];
    if (first === undefined) continue;
    const [primary] = await readParts(look, instance, [first], []);
    if (primary === undefined || !primary[1].there || !primary[1].ours) continue;
    found.push(primary, ...(await readParts(look, instance, rest, [])));
  }
  return found;
}
