import type { Millis } from '#core/ports/money.ts';
import { describeAccounts } from '#core/ports/test/counter-store.promises.ts';
import { createManualTime } from '../../../../test/doubles/time.ts';
import { createMemoryCounterStore, MEMORY_EPOCH } from '../counter-store.ts';

describeAccounts('memory', async () => {
  const { clock, advance: pass, jump } = createManualTime();
  const advance = (millis: Millis) => (millis < 0 ? jump(millis) : pass(millis));
  return { store: createMemoryCounterStore({ clock }), epoch: MEMORY_EPOCH, now: clock.now, advance };
});
