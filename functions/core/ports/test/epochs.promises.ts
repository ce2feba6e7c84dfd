// Promises of epochs, in PostgreSQL or in memory.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Epochs } from '../epochs.ts';

/** `make` returns the epochs of an instance that has none yet; it is called once per test. */
export function describeEpochs(name: string, make: () => Promise<Epochs>): void {
  describe(`epochs in ${name}`, () => {
    let epochs: Epochs;
    beforeEach(async () => {
      epochs = await make();
    });

    test('there is none at first, and it is not open', async () => {
      expect(await epochs.beat('one', 0)).toMatchObject({ epoch: 0, isOpen: false, missing: 0 });
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
      await epochs.beat('one', 0);
      await epochs.beat('two', 0);
      expect(await epochs.beat('three', 1)).toMatchObject({ missing: 2 });
      expect(await epochs.beat('one', 1)).toMatchObject({ missing: 1 });
      await epochs.leave('two');
      expect(await epochs.state()).toMatchObject({ missing: 0 });
    });
  });
}
