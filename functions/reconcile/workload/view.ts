// What does a run know of what runs an instance's gateway?
import type { Problem } from '../problem.ts';
import type { PartName, WorkloadType } from './parts.ts';
import type { PartView, WantedPart } from './wanted.ts';

export interface WorkloadView {
  /** The generation of the instance that this was found out for. */
  readonly generation: number;
  /** Undefined: `Auto` could not be decided, and nothing was before. */
  readonly type: WorkloadType | undefined;
  /** What keeps it from being made as it should be; what runs goes on. */
  readonly held: Problem | undefined;
  /** Empty while it is held. */
  readonly wanted: ReadonlyArray<WantedPart>;
  /** Absent: nobody looked. */
  readonly parts: ReadonlyMap<PartName, PartView>;
  /** What the API server would not take, in this run. */
  readonly refused?: Problem;
}
