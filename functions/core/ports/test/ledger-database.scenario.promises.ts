// The scenario of the promises of the ledger database: an instance in its first epoch, accounts that book and are
// closed.

import type { AccountFigures } from '../counter-store.ts';
import type { Epochs } from '../epochs.ts';
import type { AccountClosing, Batch, LedgerDatabase } from '../ledger-database.ts';
import type { LedgerRow } from '../ledger-rows.ts';
import type { Nano } from '../money.ts';
import type { ScopeWindow } from '../policy.ts';
import type { Registry } from '../registry.ts';
import { ledgerRowOf, NOON, scopeWindow } from './ledger-row.fixture.ts';

export interface LedgerDatabaseUnderTest {
  readonly database: LedgerDatabase;
  readonly epochs: Epochs;
  /** The registry over the same database: recounts are written with a policy. */
  readonly registry: Registry;
}

/** The ledger database of an open instance, in its first epoch, open as well. */
export async function openLedgerDatabase(
  make: () => Promise<LedgerDatabaseUnderTest>,
): Promise<LedgerDatabaseUnderTest> {
  const under = await make();
  await under.registry.openInstance({ uid: 'instance-1', namespace: 'apps', name: 'gateway' });
  await under.epochs.raise(0, 0);
  await under.epochs.open(1);
  return under;
}

/** Figures of an account in a counter: the risk, and unbooked spend by batch. */
export const figuresOf = (of: ScopeWindow, risk: Nano, ...unbooked: ReadonlyArray<Nano>): AccountFigures => ({
  ...of,
  escrow: 0n,
  risk,
  unbookedSpend: unbooked.map((spend, place) => ({ batch: place + 1, spend })),
});

/** `under` is called for each operation: each test has its own database. */
export function accountScenario(under: () => LedgerDatabaseUnderTest) {
  const batch = (id: string, number: number, rows: ReadonlyArray<LedgerRow>, more: Partial<Batch> = {}) =>
    under().database.bookBatch({
      epoch: 1,
      account: { id, batch: number, callNumber: 10 * number },
      storeCalls: 0,
      rows,
      ...more,
    });
  const book = async (id: string, number: number, ...costs: ReadonlyArray<Nano>) =>
    (
      await batch(
        id,
        number,
        costs.map((cost) => ledgerRowOf({ cost })),
      )
    ).outcome;
  const close = (account: string, figures: AccountClosing['figures'], more: Partial<AccountClosing> = {}) =>
    under().database.close({ epoch: 1, account, figures, isLast: true, storeCalls: 0, at: NOON, ...more });
  const spent = async (...of: ReadonlyArray<ScopeWindow>) => (await under().database.sums(of)).map((sum) => sum.spent);
  const spentOfOne = async () => (await spent(scopeWindow(1)))[0];
  const rowOf = async (account: string) => (await under().database.accountRows([account])).get(account);
  return { batch, book, close, spent, spentOfOne, rowOf };
}
