// Accounts in a small model: all orders of two processes, one store and PostgreSQL, with what may go wrong (LEDGER 3).
// Rules that it needs, beyond those of LEDGER:
// - A load names the epoch in which PostgreSQL was read, and nobody reads before an epoch is open: live processes book by ids until then.
// - Live holds are registered into absent counters; a load adds what accounts hold.
// - An account is closed only while every counter that it has something in is loaded, or before the epoch is open.
// - A process that closes its own account keeps its escrow: the first call of its next account ends the old one.
// - Escrow that was granted under a limit which has fallen meanwhile goes back.
// - A reply ends when what the store has at risk covers it with all replies that have ended untold: under the last answered call, and under
//   the call that is under way. Else it ends when its cost is told or booked. Nobody waits for the acknowledgement of a single hold.
//   A stream that a call has told counts for what that call said of it.
// - The escrow of a marked account stays until the account is forgotten. Where nothing was charged, an audit of its counters comes before.
// - The first call of a new account ends only earlier accounts that were charged. What a stop has closed is left to closers and their audit.
// - A clean stop tells the rest where the store answers, then one transaction books all, told or not, and closes the row, in any epoch; nothing is told
//   after that was tried. Where all was told, a last call lets the store forget the account; else closers do, after their audit. Sweeps find what
//   was booked where the store had lost the account.
// - A Worker ends the same way, without outbox, ticks and batches. One that releases its hold closes its row too: an old snapshot has the hold.
// - Markings and audits count as calls, and PostgreSQL learns the count of what it closes: a store that goes back between two steps shows it.
// - What was charged before an epoch is open is in the sums that are loaded in it: the end of its account does not charge it again.
// - A closing charges nothing where PostgreSQL's row has a later number than the frozen account: the store has gone back.
import { describe, expect, test } from 'vitest';
import { FLAWS, type Flaw } from './flaws.ts';
import { COVERED, GROWING, LARGE_SCENES, ONE, ONE_WORKER, SCENES, STREAM, scene, WIPED } from './scenes.ts';
import { search } from './search.ts';
import type { Scene } from './state.ts';

const TIMEOUT = 1_800_000;
const TRIED = process.env.FAULT_STATES === 'all' ? [...SCENES, ...LARGE_SCENES] : SCENES;

test.each(TRIED.map((one) => [`${one.name}, ${JSON.stringify(one.faults)}`, one] as const))(
  'in any order (%s), no limit is exceeded, nothing is charged twice or lost, and all headroom returns',
  (_, tried) => {
    const { states, quiet, wrong } = search(tried);
    expect(wrong).toBeUndefined();
    expect(states).toBeGreaterThan(400);
    expect(quiet).toBeGreaterThan(10);
  },
  TIMEOUT,
);

/** The scene that shows each flaw. */
const SHOWN_BY: Readonly<Record<Flaw, Scene>> = {
  'escrow is used before the store has granted it': scene({ lost: 1 }),
  'a repeated call is done again': scene({ lost: 1 }),
  'closed accounts go on': scene({ slept: 1 }),
  'a closer does not look what was booked': scene({ died: 1 }),
  'two closers charge an account': scene({ slept: 1 }),
  'what was not told is booked': scene({}),
  'a closed account is booked': scene({ slept: 1 }),
  'a sleeper takes nothing back': scene({ crashed: 1 }),
  'absent is zero': scene({ wiped: 1 }),
  'a process that was away books before it tells': scene({ crashed: 1 }),
  'escrow of a higher limit is used': scene({ lowered: 1 }),
  'a counter leaves while its window lasts': scene({}),
  'a reply ends that no risk in the store covers': scene({ died: 1 }),
  'one risk covers each of two replies': scene({ died: 1 }, COVERED),
  'a stream needs no risk': scene({ died: 1 }, STREAM),
  'a call under way counts as not done': scene({ died: 1, lost: 1 }, COVERED),
  'a call under way counts as done': scene({ died: 1, lost: 1 }),
  'a closed account is opened again by a late call': scene({ died: 1, lost: 1 }, ONE),
  'the escrow of a marked account is free': scene({ stopped: 1 }),
  'an account is forgotten before its last batch is booked': scene({ stopped: 1, died: 1 }),
  'an account that a stop has closed is charged': scene({ stopped: 1, crashed: 1 }),
  'nobody sweeps after a stop that the store knows nothing of': scene({ stopped: 1, wiped: 1, slept: 1 }, ONE),
  'a Worker that releases its hold closes no account': scene({ restored: 1 }, ONE_WORKER),
  'an old snapshot is charged': scene({ restored: 1, died: 1 }, ONE),
  'a marking is no call': scene({ restored: 1, crashed: 1 }, ONE),
  'what was charged before an epoch is open is charged again': scene({ wiped: 1, crashed: 1, slept: 1 }, WIPED),
  'an audit is no call': scene({ restored: 1, stopped: 1 }, ONE),
  'PostgreSQL learns no count from a closing': scene({ restored: 1, crashed: 2 }, ONE),
  'an account is closed in absent counters': scene({ crashed: 1, wiped: 1 }, ONE),
  'a hold grows by money that is not there': scene({}, GROWING),
};

describe('a flaw that is planted is found', () => {
  test.each(FLAWS)(
    '%s',
    (flaw) => {
      expect(search({ ...SHOWN_BY[flaw], flaw }).wrong).toBeDefined();
    },
    TIMEOUT,
  );
});
