import { randomBytes } from 'node:crypto';
import { describeRegistry } from '#core/ports/registry.promises.ts';
import { createIds } from '../../infra/adapters/ids.ts';
import { createMemoryRegistry } from './registry.ts';

describeRegistry('memory', async () => {
  const clock = { now: () => 1_800_000_000_000 };
  const registry = createMemoryRegistry({ clock, ids: createIds({ clock, random: randomBytes }) });
  return { registry, policies: registry.policies };
});
