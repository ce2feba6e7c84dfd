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

/** The same, where the first reply is a stream, of which calls tell less than its cost. */
export const STREAM = {
  ...COVERED,
  name: 'a stream and a reply',
  limits: [4],
  requests: [
    { by: 0, counters: [0], amount: 3, cost: 2, streamed: 1 },
    { by: 0, counters: [0], amount: 1, cost: 1 },
  ],
};

/** Two that together nearly fill a limit, and whose holds grow: one of them may. */
export const GROWING = {
  ...LAST,
  name: 'two holds grow',
  limits: [5],
  requests: LAST.requests.map((request) => ({ ...request, grows: 1 })),
};

/** One that grows, and another that wants the rest of the limit. */
export const ONE_GROWS = {
  ...GROWING,
  name: 'one hold grows',
  limits: [3],
  requests: [
    { by: 0, counters: [0], amount: 1, cost: 1, grows: 1 },
    { by: 1, counters: [0], amount: 2, cost: 1 },
  ],
};

/** One request, and a process that closes: small enough for more faults. */
export const ONE = { ...COVERED, name: 'one request', requests: COVERED.requests.slice(0, 1) };

/** The same, whose store is empty in a new epoch that is not open yet. */
export const WIPED = {
  ...ONE,
  begin: [
    ...['0 reads the sums', '0 loads', '0 asks for 0', 'the store is wiped'],
    ...['0 notices that the store has forgotten', '0 raises the epoch', '0 empties the store'],
  ],
};

/** A process that lasts, and a Worker: an account for one request, without a disk. */
export const WORKER = {
  ...LAST,
  name: 'a Worker beside a process',
  workers: [1],
  requests: [
    { by: 0, counters: [0], amount: 2, cost: 1 },
    { by: 1, counters: [0], amount: 2, cost: 1 },
  ],
};

/** The same of a Worker. */
export const ONE_WORKER = { ...WORKER, name: 'one Worker', requests: WORKER.requests.slice(1) };

export const scene = (faults: Partial<Faults>, of: Omit<Scene, 'faults'> = LAST): Scene => ({ ...of, faults });
const scenes = (of: Omit<Scene, 'faults'>, ...faults: Partial<Faults>[]): Scene[] =>
  faults.map((one) => scene(one, of));

/** Seconds each. */
export const SCENES: ReadonlyArray<Scene> = [
  ...scenes(LAST, {}, { lost: 1 }, { died: 1 }, { crashed: 1 }, { slept: 1 }, { stopped: 1 }),
  ...scenes(LAST, { wiped: 1 }, { lowered: 1 }, { edges: 1 }, { died: 1, wiped: 1 }, { stopped: 1, died: 1 }),
  ...scenes(SHARED, {}, { lost: 1 }),
  ...scenes(COVERED, { died: 1 }),
  ...scenes(STREAM, { died: 1 }),
  ...scenes(GROWING, {}),
  ...scenes(ONE_GROWS, { died: 1 }, { crashed: 1 }, { edges: 1 }, { wiped: 1 }),
  ...scenes(ONE, { crashed: 2 }, { restored: 1, died: 1 }, { restored: 1, stopped: 1 }),
  ...scenes(ONE_WORKER, { restored: 1 }),
  ...scenes(WORKER, {}, { lost: 1 }, { died: 1 }, { slept: 1 }, { wiped: 1 }),
];

/** Minutes and gigabytes: tried with FAULT_STATES=all. */
export const LARGE_SCENES: ReadonlyArray<Scene> = [
  ...scenes(LAST, { restored: 1 }, { crashed: 2 }, { died: 1, lost: 1 }),
  ...scenes(STREAM, { died: 1, lost: 1 }),
  ...scenes(COVERED, { died: 1, lost: 1 }, { slept: 1, died: 1 }),
  ...scenes(LAST, { crashed: 1, lost: 1 }, { crashed: 1, wiped: 1 }, { crashed: 1, slept: 1 }, { crashed: 1, died: 1 }),
  ...scenes(LAST, { slept: 1, wiped: 1 }, { slept: 1, lost: 1 }, { slept: 1, died: 1 }, { slept: 1, stopped: 1 }),
  ...scenes(LAST, { wiped: 1, lost: 1 }, { lowered: 1, lost: 1 }, { stopped: 1, lost: 1 }),
  ...scenes(LAST, { stopped: 1, crashed: 1 }, { stopped: 1, wiped: 1 }, { stopped: 1, restored: 1 }),
  ...scenes(WORKER, { died: 1, lost: 1 }, { died: 1, slept: 1 }, { died: 1, wiped: 1 }, { crashed: 1, lost: 1 }),
  ...scenes(WORKER, { wiped: 1, lost: 1 }, { restored: 1 }),
  ...scenes(
    ONE,
    { restored: 1, crashed: 1 },
    { wiped: 1, crashed: 1, slept: 1 },
    { restored: 1, crashed: 2 },
    { restored: 1, slept: 1 },
    { restored: 1, lost: 1 },
  ),
];
