// The first state of a scene: counters absent, one account a process, nothing asked.
import type { Faults, Process, Scene, State } from './state.ts';
import { zeros } from './sums.ts';

const NOTHING: Faults = {
  ...{ lost: 0, slept: 0, crashed: 0, died: 0, stopped: 0, wiped: 0, restored: 0, lowered: 0, edges: 0 },
};

export function initial(scene: Scene): State {
  return {
    store: { epoch: 1, counters: zeros(scene).map(() => null), accounts: {}, finished: [] },
    window: 0,
    limits: [...scene.limits],
    books: { epoch: 1, open: true, settled: [], expired: {}, corrected: [], rows: {} },
    processes: Array.from({ length: scene.processes }, (_, index) => processOf(scene, index)),
    requests: scene.requests.map(() => ({
      stage: 'new',
      window: 0,
      isEnded: false,
      isFigured: false,
      isGrown: false,
      atSize: false,
      batch: 0,
    })),
    ...{ late: [], saved: null, ahead: [], stale: false, excused: false, unaudited: false, lost: [] },
    left: { ...NOTHING, ...scene.faults },
  };
}

/** A process with its first account, before its first call. */
export const processOf = (scene: Scene, index: number): Process => ({
  ...{
    gone: '',
    out: false,
    asleep: false,
    isForgotten: false,
    ending: '',
    epoch: 1,
    joined: 1,
    account: index * 4,
    accounts: [index * 4],
    no: 0,
    pending: null,
  },
  ...{
    escrow: zeros(scene),
    risk: zeros(scene),
    limits: [...scene.limits],
    known: [...scene.limits],
    window: 0,
    batch: 1,
    sealed: 0,
    booked: 0,
    corrections: [],
  },
  ...{ read: null, closing: null },
});
