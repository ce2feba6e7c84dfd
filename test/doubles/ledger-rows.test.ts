import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { describeLedgerRows } from '#core/ports/test/ledger-rows.promises.ts';
import { createMemoryLedgerRows } from './ledger-rows.ts';
import { createMemoryRegistry } from './registry.ts';

describeLedgerRows('memory', async () => {
  const clock = { now: () => 1_800_000_000_000 };
  const ledgerRows = createMemoryLedgerRows();
  const book = async (_: string, entries: ReadonlyArray<LedgerRow>) => ({ rejected: ledgerRows.insert(entries) });
  return { ledgerRows, book, registry: createMemoryRegistry({ clock, ...ledgerRows }) };
});
