// Whether clients outside the cluster reach an instance by its HTTPRoute or Ingress, as controllers report it in their
// status, and the addresses of the instance.
import { toOtherReason } from '#core/conditions/reasons.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import type { InstanceAddress } from '../action.ts';
import type { LiveWorkloadObject } from '../workload/live-object.ts';
import { hasHosts, type RequestedRoute, requestedRoute } from '../workload/route.ts';
import { type RouteName, workloadObjectTitle } from '../workload/workload-objects.ts';
import { type CheckResult, type InstanceView, idOf, type Problem, type World } from '../world.ts';
import { type WorkloadConditions, whyLeftAlone } from './conditions-workload.ts';

type Workload = Pick<WorkloadConditions, 'type' | 'url'>;

export interface RouteConditions {
  /** Undefined: the spec asks for no route. */
  readonly check: CheckResult | undefined;
  readonly address: InstanceAddress;
}

/**
 * `url` of the spec is the address for clients from the first time that the route works until the field is removed.
 * After an edit, the previous address stays until the route works as it is now.
 */
export function evaluateRoute(view: InstanceView, workload: Workload, world: World): RouteConditions {
  const internalURL = workload.url;
  const requested = requestedRoute(view.object);
  if (requested === undefined) return { check: undefined, address: { url: internalURL, internalURL } };
  const { url } = requested;
  const check = checkRoute(view, requested, workload, world);
  const { url: before, internalURL: internalBefore } = view.object.status ?? {};
  const wasUsed = internalBefore !== undefined && before !== internalBefore;
  return { check, address: { url: check.ok ? url : wasUsed ? before : internalURL, internalURL } };
}

function checkRoute(
  view: InstanceView,
  { objectKind, hosts }: RequestedRoute,
  { type }: Workload,
  world: World,
): CheckResult {
  const problem = whyNotSupported(type) ?? view.routeProblems.get(objectKind) ?? whyNotWritten(view, objectKind, world);
  if (problem !== undefined) return { ok: false, ...problem };
  const live = view.workloadObjects.get(objectKind);
  const title = workloadObjectTitle(objectKind, view.object.metadata.name);
  if (live === undefined) return notReady(`${title} does not exist yet`);
  if (!hasHosts(live, hosts))
    return notReady(
      `${title} does not have the host names of the spec yet: if this lasts for more than a minute, read the log of the reconciler`,
    );
  return objectKind === 'HTTPRoute' ? readHTTPRoute(live, view.object, title) : readIngress(live, title);
}

/** The type of `Auto` may be unknown yet. */
function whyNotSupported(type: WorkloadConditions['type']): Problem | undefined {
  if (type === undefined || type === 'Deployment') return undefined;
  const instead =
    type === 'Knative'
      ? 'remove the field and create a DomainMapping, or set spec.workload.type to Deployment'
      : 'remove the field';
  const message = `the workload is of type ${type}, and only a Deployment has an HTTPRoute or Ingress: ${instead}`;
  return { reason: 'NotSupported', message };
}

function whyNotWritten(view: InstanceView, objectKind: RouteName, world: World): Problem | undefined {
  const { kind, metadata } = view.object;
  const refused = world.failures.get(idOf(kind, metadata));
  const alone = whyLeftAlone(view, objectKind, world);
  return alone?.reason === 'WorkloadConflict' ? alone : refused?.reason === 'RouteRefused' ? refused : undefined;
}

const notReady = (message: string): CheckResult => ({ ok: false, reason: 'RouteNotReady', message });

const NEEDED = ['Accepted', 'ResolvedRefs'];

/** A Gateway that has taken the route as it is now is enough. Parents that the spec no longer names do not count. */
function readHTTPRoute(
  { metadata, status }: LiveWorkloadObject,
  { metadata: { namespace }, spec }: GatewayInstance,
  title: string,
) {
  const isRequested = ({ parentRef }: Parent) =>
    spec.httpRoute?.parentRefs.some((one) => idOfParent(one, namespace) === idOfParent(parentRef, namespace));
  const parents = status.parents.filter(isRequested);
  const isTrue = ({ conditions }: Parent, type: string) =>
    conditions.some((one) => one.type === type && one.status === 'True' && isCurrent(one));
  const isCurrent = ({ observedGeneration = metadata.generation }) => observedGeneration >= metadata.generation;
  const taken = parents.find((parent) => NEEDED.every((type) => isTrue(parent, type)));
  if (taken !== undefined)
    return { ok: true, message: `${title} is accepted by Gateway ${idOfParent(taken.parentRef, namespace)}` } as const;
  for (const { parentRef, conditions } of parents) {
    const bad = conditions.find((one) => NEEDED.includes(one.type) && one.status === 'False' && isCurrent(one));
    if (bad === undefined) continue;
    const message = `${title}: Gateway ${idOfParent(parentRef, namespace)} reports ${bad.type} False: ${bad.message}`;
    return { ok: false, reason: bad.reason === '' ? 'RouteNotReady' : toOtherReason(bad.reason), message } as const;
  }
  const names = spec.httpRoute?.parentRefs.map((one) => idOfParent(one, namespace)).join(', ');
  return notReady(
    `${title} waits for Gateway ${names}: if this lasts longer than a minute, check whether the Gateway exists and its listener allows routes from namespace ${namespace}`,
  );
}

type Parent = LiveWorkloadObject['status']['parents'][number];

/** `namespace/name`, and the listener. */
const idOfParent = ({ name, namespace, sectionName }: Parent['parentRef'], own: string): string =>
  `${namespace ?? own}/${name}${sectionName === undefined ? '' : ` listener ${sectionName}`}`;

function readIngress({ status }: LiveWorkloadObject, title: string): CheckResult {
  const address = status.loadBalancer.ingress
    .map(({ ip, hostname }) => hostname ?? ip)
    .find((one) => one !== undefined);
  if (address !== undefined) return { ok: true, message: `${title} has the address ${address}` };
  return notReady(
    `${title} has no address yet: if this lasts longer than five minutes, check whether a controller serves the class of spec.ingress.ingressClassName`,
  );
}
