// The writes of an instance's workload objects. Objects of others, and those of a later version of the operator, are
// never changed; conditions report them.
import type { KubeObject } from '#core/ports/cluster.ts';
import { type Action, about } from '../action.ts';
import { type WorkloadObjectKind, workloadObjectTitle } from '../workload/workload-objects.ts';
import type { InstanceView, World } from '../world.ts';
import { whyLeftAlone } from './conditions-workload.ts';

export function createWorkloadActions(view: InstanceView, world: World) {
  const { object, workloadObjects } = view;
  const isWritable = (objectKind: WorkloadObjectKind) =>
    whyLeftAlone(view, objectKind, world) === undefined &&
    workloadObjects.get(objectKind)?.metadata.deletionTimestamp === undefined;
  const titleOf = (objectKind: WorkloadObjectKind) => workloadObjectTitle(objectKind, object.metadata.name);
  return {
    /** Writes the workload object whole; an apply that changes nothing writes nothing. */
    apply: (objectKind: WorkloadObjectKind, desired: KubeObject): Action[] => {
      if (!isWritable(objectKind)) return [];
      const uid = workloadObjects.get(objectKind)?.metadata.uid;
      const title = titleOf(objectKind);
      const why = uid === undefined ? `${title} does not exist` : `${title} differs from the spec of the instance`;
      const { generation } = object.metadata;
      return [{ action: 'ApplyWorkload', ...about(object, why), objectKind, object: desired, generation, uid }];
    },
    remove: (objectKind: WorkloadObjectKind, why: string): Action[] => {
      const live = workloadObjects.get(objectKind);
      if (live === undefined || !isWritable(objectKind)) return [];
      const { name, uid = '' } = live.metadata;
      return [
        { action: 'DeleteWorkload', ...about(object, `${titleOf(objectKind)}: ${why}`), objectKind, object: name, uid },
      ];
    },
  };
}
