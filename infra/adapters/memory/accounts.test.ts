import { describeAccounts } from '#core/ports/accounts.promises.ts';
import { createManualTime } from '../../../test/doubles/time.ts';
import { createMemoryAccounts, MEMORY_EPOCH } from './accounts.ts';

describeAccounts('memory', async () => {
  const { clock, advance } = createManualTime();
  return { store: createMemoryAccounts({ clock }), epoch: MEMORY_EPOCH, now: clock.now, advance };
});
