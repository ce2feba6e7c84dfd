// What does every registry promise of removals that a person let go ahead?
import { beforeEach, describe, expect, test } from 'vitest';
import { INSTANCE, OTHER, openedRegistry, type RegistryUnderTest } from './registry.scene.promises.ts';
import type { Registry } from './registry.ts';

/** `make` as in `describeRegistry`, which runs this too. */
export function describeReleases(make: () => Promise<RegistryUnderTest>): void {
  describe('released removals', () => {
    let registry: Registry;
    beforeEach(async () => {
      ({ registry } = await openedRegistry(make));
    });

    const released = async () => (await registry.instance(INSTANCE.uid)).released;

    test('are remembered by the name of their plan, each instance its own, until they are done', async () => {
      expect(await released()).toBeUndefined();
      await registry.release(INSTANCE.uid, 'first', ['a', 'b']);
      await registry.release(INSTANCE.uid, 'second', ['c']);
      await registry.release(INSTANCE.uid, 'first', ['a', 'd']);
      expect(await released()).toEqual(
        new Map([
          ['first', new Set(['a', 'd'])],
          ['second', new Set(['c'])],
        ]),
      );
      expect((await registry.instance(OTHER.uid)).released).toBeUndefined();
      await registry.release(INSTANCE.uid, 'first', []);
      await registry.release(INSTANCE.uid, 'first', []);
      expect(await released()).toEqual(new Map([['second', new Set(['c'])]]));
      await registry.release(INSTANCE.uid, 'second', []);
      expect(await released()).toBeUndefined();
    });

    test('are forgotten with their instance', async () => {
      await registry.release(INSTANCE.uid, 'first', ['a']);
      await registry.closeInstance(INSTANCE.uid);
      await registry.openInstance(INSTANCE);
      expect(await released()).toBeUndefined();
    });
  });
}
