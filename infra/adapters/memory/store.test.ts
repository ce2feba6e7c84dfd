import { describeStore } from '#core/ports/store.promises.ts';
import { createManualTime } from '../../../test/doubles/time.ts';
import { createMemoryStore, MEMORY_EPOCH } from './store.ts';

describeStore('memory', async () => {
  const { clock, advance } = createManualTime();
  return { store: createMemoryStore({ clock }), epoch: MEMORY_EPOCH, now: clock.now, advance };
});
