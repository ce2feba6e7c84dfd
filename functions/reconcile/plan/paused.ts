// What is told of an instance that somebody paused? Since when, and what that means: its status is all that is written of it (DESIGN 10).
import { toConditions } from '#core/conditions.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { Action } from '../action.ts';
import { isDeleted } from './deletion.ts';
import type { Outlook } from './outlook.ts';
import { tell } from './tell.ts';
import { writeStatus } from './write-status.ts';

/** The condition, there only while it is so. `Ready` stays what it was: what runs goes on. */
export const PAUSED = 'Paused';

const MEANING =
  'spec.paused is true: since then nothing of this instance is acted on but deletion, and what runs goes on; delete a VirtualKey to stop it now';

/** Deletion goes on all the same. */
export const isPaused = (object: GatewayInstance): boolean => object.spec.paused && !isDeleted(object);

/** Everything else stays as it was seen last; `observedGeneration` too, for nothing later was acted on. */
export function planPausedStatus(object: GatewayInstance, outlook: Outlook): Action[] {
  const { generation } = object.metadata;
  const judged = { type: PAUSED, status: 'True', reason: PAUSED, message: MEANING } as const;
  const conditions = toConditions([judged], object.status?.conditions ?? [], { generation, now: outlook.now });
  const writes = writeStatus(object, { ...object.status, conditions }, outlook);
  return saysPaused(object) ? writes : [...writes, tellEdit(object, PAUSED, MEANING)];
}

/** Told once, with the status that does not say it any more. */
export function planResumed(object: GatewayInstance): Action[] {
  if (isDeleted(object) || !saysPaused(object)) return [];
  return [tellEdit(object, 'Resumed', 'spec.paused is false: what was changed meanwhile is acted on')];
}

const saysPaused = ({ status }: GatewayInstance): boolean =>
  status?.conditions?.some(({ type }) => type === PAUSED) === true;

/** Pausing and resuming are edits of the spec, so a generation has one of them at most. */
const tellEdit = (object: GatewayInstance, reason: string, message: string): Action =>
  tell(object, { type: 'Normal', reason, message, once: `${reason}/${object.metadata.generation}` });
