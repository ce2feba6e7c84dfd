import { describeLedgerDatabase } from '#core/ports/test/ledger-database.promises.ts';
import { createMemoryEpochs } from './epochs.ts';
import { createMemoryLedgerDatabase } from './ledger-database.ts';
import { createMemoryRegistry } from './registry.ts';
import { createManualTime } from './time.ts';

describeLedgerDatabase('memory', async () => {
  const { clock } = createManualTime();
  const epochs = createMemoryEpochs({ clock });
  const accounts = createMemoryLedgerDatabase({ epochs });
  return { database: accounts, epochs, registry: createMemoryRegistry({ clock, ...accounts.ledgerRows }) };
});
