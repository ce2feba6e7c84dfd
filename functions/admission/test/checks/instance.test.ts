// The order of an instance's own violations and of those of its Secrets.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { createWorld, modelEntry, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);

describe('an instance', () => {
  const instance = (change: object, metadata = {}, more = {}) => review('GatewayInstance', change, metadata, more);

  test('with violations of its own is refused with those first', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'store');
    const models = [modelEntry('gpt-4o'), modelEntry('claude', { identifier: 'gpt-4o', requiresAuth: false })];
    const { refused } = await instance({ models });
    expect(refused).toHaveLength(4);
    expect(refused[1]).toContain('spec.models[1]');
    expect(refused[2]).toContain('spec.models[1]');
    expect(refused[3]).toContain('spec.redisSecretRef.nameRef');
  });
});
