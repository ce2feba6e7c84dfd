// Promises of epochs, in PostgreSQL or in memory.
import { beforeEach, describe, expect, test } from 'vitest';
import { ONE_STORE } from '../../../../test/support/one-store.ts';
import type { Epochs, EpochUser } from '../epochs.ts';

/**
 * `make` returns the epochs of an instance that has none yet, for processes with a store; it is called once per test.
 */
export function describeEpochs(name: string, make: () => Promise<(user: EpochUser) => Epochs>): void {
  describe(`epochs in ${name}`, () => {
    let epochsOf: (user: EpochUser) => Epochs;
    let epochs: Epochs;
    beforeEach(async () => {
      epochsOf = await make();
      epochs = epochsOf(ONE_STORE);
    });

    test('there is none at first, and it is not open', async () => {
      expect(await epochs.heartbeat('one', 0)).toMatchObject({ epoch: 0, isOpen: false, notJoined: 0 });
    });

    test('of many concurrent raises one succeeds', async () => {
      await Promise.all(Array.from({ length: 8 }, () => epochs.raise(0, 0)));
      expect(await epochs.state()).toMatchObject({ epoch: 1, isOpen: false });
      await epochs.raise(0, 0);
      expect(await epochs.state()).toMatchObject({ epoch: 1 });
      await epochs.raise(1, 7);
      expect(await epochs.state()).toMatchObject({ epoch: 8 });
    });

    test('an epoch is closed when raised and open when opened; an older one cannot be opened', async () => {
      await epochs.raise(0, 0);
      await epochs.open(1);
      expect(await epochs.state()).toMatchObject({ epoch: 1, isOpen: true });
      await epochs.raise(1, 1);
      await epochs.open(1);
      expect(await epochs.state()).toMatchObject({ epoch: 2, isOpen: false });
    });

    test('live processes that have not joined are awaited, those that left are not', async () => {
      await epochs.raise(0, 0);
      await epochs.heartbeat('one', 0);
      await epochs.heartbeat('two', 0);
      expect(await epochs.heartbeat('three', 1)).toMatchObject({ notJoined: 2 });
      expect(await epochs.heartbeat('one', 1)).toMatchObject({ notJoined: 1 });
      await epochs.leave('two');
      expect(await epochs.state()).toMatchObject({ notJoined: 0 });
    });

    test('an epoch belongs to the store of the process that raised it', async () => {
      const other = epochsOf({ store: 'other', startedAt: 1 });
      expect(await other.heartbeat('new', 0)).toMatchObject({ epoch: 0, isOfOtherStore: false });
      await epochs.raise(0, 0);
      expect(await epochs.state()).toMatchObject({ isOfOtherStore: false });
      expect(await other.state()).toMatchObject({ isOfOtherStore: true });
      await other.raise(1, 0);
      expect(await epochs.state()).toMatchObject({ epoch: 2, isOfOtherStore: true });
      expect(await other.state()).toMatchObject({ isOfOtherStore: false });
    });

    test('a process has a successor while a live process with another store has started later', async () => {
      const other = epochsOf({ store: 'other', startedAt: 1 });
      await epochs.heartbeat('old', 0);
      expect(await other.heartbeat('new', 0)).toMatchObject({ hasLaterProcess: false });
      expect(await epochs.heartbeat('old', 0)).toMatchObject({ hasLaterProcess: true });
      expect(await epochsOf({ ...ONE_STORE, startedAt: 2 }).heartbeat('newest', 0)).toMatchObject({
        hasLaterProcess: false,
      });
      await other.leave('new');
      expect(await epochs.heartbeat('old', 0)).toMatchObject({ hasLaterProcess: false });
    });

    test('processes that are in an epoch of another store count as live on other stores until they have left it', async () => {
      const other = epochsOf({ store: 'other', startedAt: 1 });
      await epochs.raise(0, 0);
      await epochs.heartbeat('old', 1);
      await other.raise(1, 0);
      expect(await other.heartbeat('new', 0)).toMatchObject({ notJoined: 1, liveOnOtherStores: 1 });
      await epochs.heartbeat('old', 0);
      expect(await other.heartbeat('new', 2)).toMatchObject({ notJoined: 0, liveOnOtherStores: 0 });
    });
  });
}
