// Mutants of the ledger on accounts, each broken on purpose in a bundle of its own, which the search must find.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import type { PlannedRequest, Scenario } from './execution.ts';
import { WITH_STREAMS } from './scenarios.ts';

const ROOT = join(import.meta.dirname, '../../..');

export interface Edit {
  readonly file: string;
  /** A line that occurs exactly once in the file. */
  readonly line: string;
  readonly becomes: string;
}

type Search = typeof import('./search.ts');

/** The texts of the files with these edits. Throws where a line does not occur exactly once: then name another. */
export function broken(edits: ReadonlyArray<Edit>): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const { file, line, becomes } of edits) {
    const text = texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8');
    if (text.split(line).length !== 2)
      throw new Error(`${file} has not exactly one line "${line}": break it elsewhere`);
    texts.set(
      file,
      text.replace(line, () => becomes),
    );
  }
  return texts;
}

/** The search over the code with these edits. */
export async function searchIn(edits: ReadonlyArray<Edit>): Promise<{ readonly search: Search; remove(): void }> {
  const texts = broken(edits);
  const breaking: Plugin = {
    name: 'breaking',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = texts.get(relative(ROOT, path));
        return contents === undefined ? undefined : { contents, loader: 'ts' };
      });
    },
  };
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-mutant-'));
  const outfile = join(folder, 'search.mjs');
  await build({
    entryPoints: [join(import.meta.dirname, 'search.ts')],
    absWorkingDir: ROOT,
    outfile,
    plugins: [breaking],
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  });
  const search: Search = await import(pathToFileURL(outfile).href);
  return { search, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

const CORE = 'functions/core/ledger';
const MEMORY = 'infra/adapters/memory';
const DOUBLES = 'test/doubles';

export interface Mutant {
  readonly name: string;
  readonly edits: ReadonlyArray<Edit>;
  /** A scenario that reveals it soon: the rest is random. Absent: all of it. */
  readonly scenario?: Partial<Scenario>;
  /** The seed where the search begins; absent: 1. The schedules before it do not show the mutant. */
  readonly from?: number;
}

/** Each wants the whole limit. */
const LAST = Array.from({ length: 6 }, (_, by): PlannedRequest => {
  return { by: by >> 1, scopes: [0], amount: 5n, cost: 0n, end: by % 2 ? 'settle' : 'release', after: 10 * by };
});
const LARGE: PlannedRequest = { by: 1, scopes: [2], amount: 144n, cost: 144n, end: 'settle', after: 1500 };
/** The second process takes nearly all that is left, while the first one may still believe in its escrow. */
const LARGE_LATER: Partial<Scenario> = {
  gateways: 2,
  limits: [9n, 9n, 150n],
  plannedRequests: [
    // After a single request, no escrow is requested ahead.
    { by: 0, scopes: [2], amount: 3n, cost: 3n, end: 'settle' },
    { by: 0, scopes: [2], amount: 3n, cost: 3n, end: 'settle', after: 10 },
    { by: 0, scopes: [2], amount: 3n, cost: 3n, end: 'settle', after: 2500 },
    LARGE,
  ],
};
/** Requests that end at any instant, where there is escrow ahead. */
const ALIKE = Array.from(
  { length: 6 },
  (_, by): PlannedRequest => ({ by, scopes: [2], amount: 3n, cost: 4n, end: 'settle' }),
);

/** Requests of two processes that together nearly fill a limit, and grow. */
const GROWING = Array.from({ length: 4 }, (_, by): PlannedRequest => {
  return { by, scopes: [0], amount: 2n, cost: 2n, end: 'settle', grow: 2n, after: 20 * by };
});

/** Mutants that lose or give away money, each against a law of the ledger. */
export const MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: 'escrow that is used although the last answer is old',
    from: 100,
    scenario: { ...LARGE_LATER, faults: { freeze: 1, wipe: 1 } },
    edits: [
      {
        file: `${CORE}/reservations.ts`,
        line: 'account.isOpen && intervalClock.now() - account.sentAt < RECENT && wallClock.now() - account.sentAtWall < RECENT;',
        becomes: 'account.isOpen;',
      },
    ],
  },
  {
    name: 'escrow that a call under way gives back is used',
    scenario: { gateways: 2, limits: [5n, 9n, 200n], plannedRequests: LAST, faults: {} },
    edits: [
      {
        file: `${CORE}/counters.ts`,
        line: 'const left = escrow - returnedInCall - pendingSpend(state);',
        becomes: 'const left = escrow - pendingSpend(state);',
      },
    ],
  },
  {
    name: 'escrow of a limit that has fallen is used',
    from: 420,
    scenario: { faults: { lower: 1 } },
    edits: [
      {
        file: `${CORE}/counters.ts`,
        line: 'limitAtGrant !== undefined && limitAtGrant <= limit;',
        becomes: 'limitAtGrant !== undefined || limit < 0n;',
      },
    ],
  },
  {
    name: 'escrow of an account that was left is used',
    scenario: {
      ...LARGE_LATER,
      // Six requests together leave escrow; the second process takes what is left; the first one has two more.
      plannedRequests: [
        ...ALIKE.map((planned) => ({ ...planned, by: 0, cost: 3n })),
        { ...LARGE, amount: 132n, cost: 132n, after: 100 },
        ...[160, 300].map(
          (after): PlannedRequest => ({ by: 0, scopes: [2], amount: 3n, cost: 3n, end: 'settle', after }),
        ),
      ],
      faults: { wipe: 1 },
    },
    edits: [
      {
        file: `${CORE}/account.ts`,
        line: 'for (const counter of account.counters.all()) resetFigures(counter);',
        becomes:
          'for (const counter of account.counters.all()) {\n const { escrow } = counter;\n resetFigures(counter);\n counter.escrow = escrow;\n}',
      },
    ],
  },
  {
    name: 'a call that is repeated with a new number',
    scenario: { faults: { lose: 1 } },
    edits: [
      {
        file: `${CORE}/account-sync.ts`,
        line: 'notBefore = intervalClock.now() + pause;',
        becomes:
          'Object.assign(pending?.call ?? {}, { callNumber: (account.callNumber += 1) });\n    notBefore = intervalClock.now() + pause;',
      },
    ],
  },
  {
    name: 'a repeated call that is done again',
    scenario: { faults: { lose: 1 } },
    edits: [
      {
        file: `${MEMORY}/counter-store.ts`,
        line: 'if (!isRepeated) perform(store, account, call, now);',
        becomes: 'perform(store, account, call, now);',
      },
    ],
  },
  {
    name: 'settlements that are reported twice where a counter was absent',
    edits: [
      {
        file: `${CORE}/account-call.ts`,
        line: "account.requests.move('inCall', 'unreported');",
        becomes:
          "for (const ended of account.requests.in('inCall')) account.requests.addUnreported({ ...ended, state: 'unreported' });\n  account.requests.move('inCall', 'unreported');",
      },
    ],
  },
  {
    name: 'settlements that are booked before they are reported',
    edits: [
      {
        file: `${CORE}/booking.ts`,
        line: "const first = new Set(toTransactions(requests.in('openBatch').map(({ row }) => row))[0]);",
        becomes:
          "requests.move('unreported', 'inCall');\n  requests.move('inCall', 'openBatch');\n  const first = new Set(requests.in('openBatch').map(({ row }) => row));",
      },
    ],
  },
  {
    name: 'a batch that is sealed while a call may add to it',
    from: 840,
    scenario: { faults: { vanish: 1 } },
    edits: [
      {
        file: `${CORE}/booking.ts`,
        line: "if (requests.in('openBatch').length === 0 || requests.in('inCall').length > 0) return false;",
        becomes: "if (requests.in('openBatch').length === 0) return false;",
      },
    ],
  },
  {
    name: 'corrections that are forgotten',
    scenario: { faults: { die: 1 } },
    edits: [
      {
        file: `${CORE}/previous-accounts.ts`,
        line: 'addUnreservedRequest(account, { row: toCorrectionRow(expiredRow, account.now()), endedAt: intervalClock.now() });',
        becomes: ';',
      },
    ],
  },
  {
    name: 'a risk that is not reported',
    // Calls name a counter that has a request in flight only if another request changes it.
    scenario: {
      gateways: 1,
      limits: [9n, 9n, 200n],
      plannedRequests: ALIKE.map((planned) => ({ ...planned, by: 0, cost: 3n })),
      faults: { vanish: 1 },
    },
    edits: [
      {
        file: `${CORE}/account-call.ts`,
        line: 'return { scopeId, window, limit, spend: spend.inCall, risk, carriedOver: 0n, ...escrowChange, sum };',
        becomes:
          'return { scopeId, window, limit, spend: spend.inCall, risk: 0n, carriedOver: 0n, ...escrowChange, sum };',
      },
    ],
  },
  {
    name: 'a reply that ends before the store could charge it',
    scenario: { plannedRequests: ALIKE, faults: { vanish: 1, hang: 1 } },
    edits: [
      {
        file: `${CORE}/settlement.ts`,
        line: 'isWritten ? whenCovered(counters) :',
        becomes: 'isWritten ? undefined :',
      },
    ],
  },
  {
    name: 'a release that is reported as spend',
    edits: [
      {
        file: `${CORE}/settlement.ts`,
        line: "endLive(live, 'released', { isCalled, tokens: NO_TOKENS });",
        becomes:
          "for (const counter of live.counters) counter.spend.unreported += live.amount;\n    endLive(live, 'released', { isCalled, tokens: NO_TOKENS });",
      },
    ],
  },
  {
    name: 'a settlement that is not written before the reply ends',
    scenario: { faults: { die: 1 } },
    edits: [
      {
        file: `${CORE}/settlement.ts`,
        line: "const isWritten = await append(context, { type: 'settle', row });",
        becomes: "const isWritten = true;\n    void append(context, { type: 'settle', row });",
      },
    ],
  },
  {
    name: 'a restart that does not read the journal',
    scenario: { faults: { die: 1 } },
    edits: [{ file: `${CORE}/membership.ts`, line: 'await journal.replay()', becomes: '[]' }],
  },
  {
    name: 'a journal that lacks records and stays',
    scenario: { plannedRequests: WITH_STREAMS.plannedRequests, faults: { full: 1 } },
    edits: [{ file: `${CORE}/journal-records.ts`, line: '  journal.discard();', becomes: '' }],
  },
  {
    name: 'a request that waits over the stop and is admitted',
    scenario: { faults: { stop: 1 } },
    edits: [{ file: `${CORE}/ledger.ts`, line: 'context.waitQueue.refuseAll();', becomes: ';' }],
  },
  {
    name: 'a rebuild that forgets live reservations',
    scenario: { faults: { wipe: 1 } },
    edits: [
      {
        file: `${CORE}/account-opening.ts`,
        line: 'const carriedOver = limit === undefined ? 0n : liveAmount + (spend.unreported > 0n ? spend.unreported : 0n);',
        becomes: 'const carriedOver = 0n;',
      },
    ],
  },
  {
    name: 'a rebuild that drops replies that end meanwhile',
    from: 260,
    scenario: { plannedRequests: ALIKE, faults: { wipe: 1 } },
    edits: [
      {
        file: `${CORE}/account.ts`,
        line: 'if (!bookedRows.has(row)) return false;',
        becomes: '',
      },
    ],
  },
  {
    name: 'a counter that is absent and taken for zero',
    scenario: { faults: { wipe: 1 } },
    edits: [
      {
        file: `${CORE}/counter-loading.ts`,
        line: 'counter.loadedSum = { spent, readAt };',
        becomes: 'counter.loadedSum = { spent: spent - spent, readAt };',
      },
    ],
  },
  {
    name: 'a budget per key that does not count what was spent before',
    from: 1_000_000,
    edits: [
      {
        file: `${CORE}/counter-loading.ts`,
        line: 'if (derived.length > 0) await database.countFirst(derived);',
        becomes: '',
      },
    ],
  },
  {
    name: 'a window that begins without limits',
    edits: [{ file: `${CORE}/wait-queue.ts`, line: 'state.limit = limit;', becomes: ';' }],
  },
  {
    name: 'a store that does not compare epochs',
    scenario: { faults: { restore: 2 } },
    edits: [
      {
        file: `${MEMORY}/counter-store.ts`,
        line: 'return call.epoch === store.epoch ?',
        becomes: 'return store.epoch > 0 ?',
      },
    ],
  },
  {
    name: 'a store that does not show that it has gone back in time',
    scenario: { faults: { restore: 1 } },
    edits: [
      {
        file: `${MEMORY}/counter-store.ts`,
        line: "if (call.callNumber !== last + 1) return { ...stale, why: 'wentBack' };",
        becomes: '',
      },
      { file: `${CORE}/account-sync.ts`, line: 'if (reply.storeCalls <= knownStoreCalls)', becomes: 'if (false)' },
    ],
  },
  {
    name: 'a closed account whose calls are still done',
    scenario: { faults: { sleep: 1 } },
    edits: [
      { file: `${MEMORY}/counter-store.ts`, line: ': existing.isFrozen || existing.isFinished;', becomes: ': false;' },
    ],
  },
  {
    name: 'a closed account whose batches are still booked',
    from: 120,
    scenario: { faults: { sleep: 1 } },
    edits: [
      {
        file: `${DOUBLES}/ledger-database.ts`,
        line: "return isClosed && account.batch > bookedBatch ? 'tooLate' : 'booked';",
        becomes: "return 'booked';",
      },
    ],
  },
  {
    name: 'a closer that does not look what was booked',
    scenario: { faults: { vanish: 1 } },
    edits: [
      {
        file: `${DOUBLES}/ledger-database.ts`,
        line: 'toExpiredRows({ account, isLast, ...closing }, row.bookedBatch, drawn)',
        becomes: 'toExpiredRows({ account, isLast, ...closing }, 0, drawn)',
      },
    ],
  },
  {
    name: 'two closers that charge an account',
    // Leases that end while the clock jumps may be renewed: only a process that dies leaves one to close.
    scenario: { faults: { die: 1, clock: 1, audit: 1 } },
    edits: [
      {
        file: `${DOUBLES}/ledger-database.ts`,
        line: 'if (row.isClosed && !row.isClosing) return { row, ledgerRows: [] };',
        becomes: '',
      },
      {
        file: `${DOUBLES}/ledger-database.ts`,
        line: '!scopeWindows.some((of) => counters.has(counterKey(of)))',
        becomes: 'scopeWindows.length > 0',
      },
    ],
  },
  {
    name: 'a closing that ends after its first page',
    scenario: { faults: { vanish: 1 } },
    edits: [
      {
        file: `${CORE}/account-closing.ts`,
        line: 'const isLast = page.next === undefined;',
        becomes: 'const isLast = true;\n    page.total = 0;',
      },
    ],
  },
  {
    name: 'corrections while another process still charges',
    scenario: { faults: { sleep: 1, stop: 1 } },
    edits: [
      {
        file: `${DOUBLES}/ledger-database.ts`,
        line: '{ isClosed: true, isClosing: false }',
        becomes: '{ isClosed: true }',
      },
    ],
  },
  {
    name: 'growth that the journal does not have when it counts',
    scenario: { plannedRequests: GROWING, faults: { die: 1 } },
    edits: [
      {
        file: `${CORE}/reservation-growth.ts`,
        line: 'await recordReservation(context, live);',
        becomes: 'void recordReservation(context, live);',
      },
    ],
  },
  {
    name: 'growth by money that is not there',
    scenario: { plannedRequests: GROWING, faults: {} },
    edits: [
      {
        file: `${CORE}/reservation-growth.ts`,
        line: 'const fitsIdle = hasRecentReply(context) && counters.every((counter) => fits(counter, by));',
        becomes: 'const fitsIdle = true;',
      },
    ],
  },
  {
    name: 'growth that its reservation takes later than it is granted',
    scenario: { plannedRequests: GROWING, faults: {} },
    edits: [
      {
        file: `${CORE}/reservation-growth.ts`,
        line: 'onReserved: () => resolve(add(context, live, by)),',
        becomes: 'onReserved: () => void context.timer(30, () => resolve(add(context, live, by))),',
      },
    ],
  },
  {
    name: 'an account that our own error leaves half changed continues',
    scenario: { faults: { error: 1 } },
    edits: [{ file: `${CORE}/account-sync.ts`, line: "context.membership.rejoin('error');", becomes: ';' }],
  },
  {
    name: 'accounts of the dead that nobody closes',
    scenario: { faults: { vanish: 1 } },
    edits: [{ file: `${CORE}/account-sync.ts`, line: 'context.endedAccounts.closeNamedIn(reply);', becomes: ';' }],
  },
];
