import { describeStore } from '#core/ports/store.promises.ts';
import { createMemoryStore, MEMORY_EPOCH } from './store.ts';
import { createManualTime } from './time.ts';

describeStore('memory', async () => {
  const { clock, advance } = createManualTime();
  return { store: createMemoryStore({ clock }), epoch: MEMORY_EPOCH, now: clock.now, advance };
});
