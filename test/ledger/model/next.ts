// Steps of the model: everything that may follow on a state.

import { ofProcess } from './process.ts';
import { ofRequest } from './request.ts';
import { copyOf, type Edge, type State, type StoreStep } from './state.ts';
import { ofWorld } from './world.ts';

/** All next steps of a state. */
export function next(state: State): Edge[] {
  const edges: Edge[] = [];
  const go = (
    label: string,
    change: (to: State) => readonly StoreStep[] | string | { steps: readonly StoreStep[]; wrong: string },
  ): void => {
    const to = copyOf(state);
    const done = change(to);
    if (typeof done === 'string') edges.push({ name: label, to, steps: [], wrong: done });
    else if ('wrong' in done) edges.push({ name: label, to, steps: done.steps, wrong: done.wrong });
    else edges.push({ name: label, to, steps: done });
  };
  for (const of of state.requests.keys()) ofRequest(state, of, go);
  for (const who of state.processes.keys()) ofProcess(state, who, go);
  ofWorld(state, go);
  return edges;
}
