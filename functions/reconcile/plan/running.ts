// What does a controller say of the part that runs a gateway?
import type { Reached } from '../problem.ts';

export interface Running {
  readonly reached: Reached;
  /** Where it serves, if only it knows. */
  readonly url?: string | undefined;
  /** Nothing of an earlier configuration runs any more. */
  readonly isSettled: boolean;
}
