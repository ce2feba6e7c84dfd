// Objects that change without another request: gateways that start, deletions that are tried again, keys that were deferred.

import type { Objects } from './observe/objects.ts';
import { hasFinalizer, isDeleted } from './plan/deletion.ts';
import type { Scope } from './scope.ts';
import { type InstanceView, idOf, type OwnObject, pathOf, type World } from './world.ts';

/** A schedule and hints ask again while there are any. What waits for a person (a stuck rollout, a paused instance) is not counted. */
export function countUnderWay({ instances, keys, users, teams, malformed }: World): number {
  const deferred = keys.values().reduce((sum, { later }) => sum + (later === true ? 1 : 0), 0);
  const starting = instances.values().reduce((sum, view) => sum + (isStarting(view) ? 1 : 0), 0);
  const objects = [instances, keys].flatMap((views) => [...views.values()].map(({ object }) => object));
  const deleting = [...objects, ...users.values(), ...teams.values(), ...malformed.values()].filter(isBeingDeleted);
  return deferred + starting + deleting.length;
}

const isBeingDeleted = (object: Pick<OwnObject, 'metadata'>): boolean => isDeleted(object) && hasFinalizer(object);

function isStarting({ object: { spec, status } }: InstanceView): boolean {
  const workload = status?.conditions?.find(({ type }) => type === 'WorkloadReady');
  return spec.paused !== true && workload?.status === 'False' && workload.reason === 'WorkloadNotReady';
}

/** Whether a hint named an object that is not there: the API server stores it after admission has answered. */
export function isAwaited(scope: Scope, { instances, keys, users, teams, malformed }: Objects): boolean {
  if (scope.look !== 'at') return false;
  const found = { GatewayInstance: instances, VirtualKey: keys, User: users, Team: teams }[scope.kind];
  return !found.has(pathOf(scope)) && !malformed.has(idOf(scope.kind, scope));
}
