// The scenario of the promises of ledger rows: rows in, sums out, of one open instance.
import type { LedgerReader, LedgerRow } from '../ledger-rows.ts';
import type { ScopeWindow } from '../policy.ts';
import type { Registry } from '../registry.ts';

export interface LedgerRowsUnderTest {
  readonly ledgerRows: LedgerReader;
  /** Books rows of the instance, each (id, kind) once. */
  readonly book: (
    instanceUid: string,
    rows: ReadonlyArray<LedgerRow>,
  ) => Promise<{ readonly rejected: ReadonlyArray<string> }>;
  /** The registry over the same ledger rows: recounts are written with a policy. */
  readonly registry: Registry;
}

export const INSTANCE = 'instance-1';

/** The ledger rows, with the instance open. */
export async function openLedgerRows(make: () => Promise<LedgerRowsUnderTest>): Promise<LedgerRowsUnderTest> {
  const under = await make();
  await under.registry.openInstance({ uid: INSTANCE, namespace: 'apps', name: 'gateway' });
  return under;
}

/** `under` is called for each operation: each test has its own ledger rows. */
export function ledgerRowsScenario(under: () => LedgerRowsUnderTest) {
  const book = (...rows: ReadonlyArray<LedgerRow>) => under().book(INSTANCE, rows);
  const spent = async (...of: ReadonlyArray<ScopeWindow>) =>
    (await under().ledgerRows.sums(of)).map((sum) => sum.spent);
  return { book, spent };
}
