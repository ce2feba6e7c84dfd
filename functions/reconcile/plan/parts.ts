// The writes of an instance's parts. Objects of others, and those of a later version of the operator, are never
// changed; conditions report them.
import type { KubeObject } from '#core/ports/cluster.ts';
import { type Action, about } from '../action.ts';
import { type PartName, partTitle } from '../workload/object-parts.ts';
import type { InstanceView, World } from '../world.ts';
import { whyLeftAlone } from './conditions-workload.ts';

export function createPartActions(view: InstanceView, world: World) {
  const { object, parts } = view;
  const isWritable = (part: PartName) =>
    whyLeftAlone(view, part, world) === undefined && parts.get(part)?.metadata.deletionTimestamp === undefined;
  const titleOf = (part: PartName) => partTitle(part, object.metadata.name);
  return {
    /** Writes the part whole; an apply that changes nothing writes nothing. */
    apply: (part: PartName, desired: KubeObject): Action[] => {
      if (!isWritable(part)) return [];
      const uid = parts.get(part)?.metadata.uid;
      const title = titleOf(part);
      const why = uid === undefined ? `${title} does not exist` : `${title} differs from the spec of the instance`;
      const { generation } = object.metadata;
      return [{ action: 'ApplyWorkload', ...about(object, why), part, object: desired, generation, uid }];
    },
    remove: (part: PartName, why: string): Action[] => {
      const live = parts.get(part);
      if (live === undefined || !isWritable(part)) return [];
      const { name, uid = '' } = live.metadata;
      return [{ action: 'DeleteWorkload', ...about(object, `${titleOf(part)}: ${why}`), part, object: name, uid }];
    },
  };
}
