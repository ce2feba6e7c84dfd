// What else is said of an instance: pausing, its container, its database, mistakes of its own?
import { beforeEach, describe, expect, test } from 'vitest';
import { OWN_VARIABLES } from '#core/own-variables.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { createWorld, GOOD, modelEntry, objectOf, secretOf, type World } from '../../../test/admission/fixtures.ts';
import { createReviews } from '../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { told } = createReviews(() => world);

describe('an instance', () => {
  const instance = (change: object, metadata = {}, more = {}) => told('GatewayInstance', change, metadata, more);

  test('that is paused, or changed while it is, is told what waits meanwhile', async () => {
    const running = { oldObject: objectOf('GatewayInstance') };
    const paused = { oldObject: objectOf('GatewayInstance', { ...GOOD.GatewayInstance, paused: true }) };
    const warnings = [
      'spec.paused: true: nothing of a paused instance is acted on but deletion, and what runs goes on: blocks, budgets and other changes wait, no key is rotated, status shows no new spend; delete a VirtualKey to stop it meanwhile',
    ];
    const silent = { refused: [], warnings: [] };
    expect(await instance({ paused: true }, {}, running)).toEqual({ refused: [], warnings });
    expect(await instance({ paused: true, routing: { retries: 5 } }, {}, paused)).toEqual({ refused: [], warnings });
    expect(await instance({ paused: true }, { labels: { tier: 'gold' } }, paused)).toEqual(silent);
    expect(await instance({}, {}, paused)).toEqual(silent);
    expect(await instance({ paused: true })).toEqual(silent);
  });

  test('with mistakes of its own is refused with those first', async () => {
    await world.drop(RESOURCES.secrets, 'platform', 'store');
    const models = [modelEntry('gpt-4o'), modelEntry('claude', { identifier: 'gpt-4o', requiresAuth: false })];
    const { refused } = await instance({ models });
    expect(refused).toHaveLength(4);
    expect(refused[1]).toContain('spec.models[1]');
    expect(refused[2]).toContain('spec.models[1]');
    expect(refused[3]).toContain('spec.redisSecretRef.nameRef');
  });

  test('that sets a variable which its container sets itself is let in with a warning, for each of them', async () => {
    const env = [...OWN_VARIABLES.map((name) => ({ name, value: '1' })), { name: 'LOG_LEVEL', value: 'warn' }];
    const { refused, warnings } = await instance({ workload: { env } });
    expect(refused).toEqual([]);
    expect(warnings).toEqual(
      OWN_VARIABLES.map(
        (name, index) =>
          `spec.workload.env[${index}].name: "${name}": is set by the operator itself and is left out of the container; remove it`,
      ),
    );
  });

  test('that moves to another database Secret while it has keys is warned about', async () => {
    await world.put(RESOURCES.secrets, secretOf('database-2', { host: 'h', user: 'u', password: '', name: 'n' }));
    const change = { databaseSecretRef: { ...GOOD.GatewayInstance.databaseSecretRef, nameRef: 'database-2' } };
    const more = { oldObject: objectOf('GatewayInstance') };
    expect((await instance(change, {}, more)).warnings).toEqual([]);
    await world.put(virtualKeys, objectOf('VirtualKey'));
    expect((await instance(change, {}, more)).warnings).toEqual([
      expect.stringContaining('spec.databaseSecretRef: if this is another database'),
    ]);
  });
});
