import { describeRegistry } from '#core/ports/test/registry.promises.ts';
import { createMemoryRegistry } from './registry.ts';

describeRegistry('memory', async () => {
  const clock = { now: () => 1_800_000_000_000 };
  const registry = createMemoryRegistry({ clock });
  return { registry, policies: registry.policies };
});
