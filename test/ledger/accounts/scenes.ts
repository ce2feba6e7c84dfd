// Scenes of the account model: what is asked for, and what goes wrong meanwhile.
import type { Faults, Scene } from './state.ts';

/** Two processes want the last of one limit: it admits either, and both once the first has settled below its hold. */
const LAST = {
  name: 'two want the last of a limit',
  processes: 2,
  limits: [3],
  requests: [
    { by: 0, counters: [0], amount: 2, cost: 1 },
    { by: 1, counters: [0], amount: 2, cost: 2 },
  ],
};

/** A key and its team: one request pays from both, the other from the key. */
const SHARED = {
  name: 'a key and its team',
  processes: 2,
  limits: [2, 2],
  requests: [
    { by: 0, counters: [0, 1], amount: 2, cost: 1 },
    { by: 1, counters: [0], amount: 1, cost: 1 },
  ],
};

/** One process, two replies: what the first hold put at risk may cover both. The other process closes its account. */
export const COVERED = {
  name: 'one risk, two replies',
  processes: 2,
  limits: [3],
  requests: [
    { by: 0, counters: [0], amount: 2, cost: 1 },
    { by: 0, counters: [0], amount: 1, cost: 1 },
  ],
};

export const scene = (faults: Partial<Faults>, of: Omit<Scene, 'faults'> = LAST): Scene => ({ ...of, faults });

/** Seconds each. */
export const SCENES: ReadonlyArray<Scene> = [
  scene({}),
  scene({}, SHARED),
  scene({ lost: 1 }, SHARED),
  ...[{ lost: 1 }, { died: 1 }, { crashed: 1 }, { slept: 1 }, { stopped: 1 }].map((faults) => scene(faults)),
  ...[{ wiped: 1 }, { restored: 1 }, { lowered: 1 }, { edges: 1 }].map((faults) => scene(faults)),
  ...[{ died: 1, lost: 1 }, { died: 1, wiped: 1 }, { stopped: 1, lost: 1 }, { crashed: 2 }].map((faults) =>
    scene(faults),
  ),
  ...[{ died: 1 }, { died: 1, lost: 1 }, { slept: 1, died: 1 }].map((faults) => scene(faults, COVERED)),
];

/** Minutes and gigabytes: tried with FAULT_STATES=all. */
export const LARGE_SCENES: ReadonlyArray<Scene> = [
  { died: 1, lost: 1 },
  { stopped: 1, lost: 1 },
  { crashed: 1, lost: 1 },
  { crashed: 1, wiped: 1 },
  { crashed: 1, slept: 1 },
  { slept: 1, wiped: 1 },
  { slept: 1, lost: 1 },
  { wiped: 1, lost: 1 },
  { lowered: 1, lost: 1 },
  { slept: 1, died: 1 },
  { crashed: 1, died: 1 },
].map((faults) => scene(faults));
