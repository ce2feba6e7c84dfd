// Promises of all stores, in memory, in Redis or over HTTPS: LEDGER 1 to 6, as far as a store shows them.
import { describe } from 'vitest';
import { describeEndings } from './store.ending.promises.ts';
import { describeEpochs } from './store.epoch.promises.ts';
import { describeHolds } from './store.hold.promises.ts';
import { describeMoney } from './store.money.promises.ts';
import { describeRates } from './store.rates.promises.ts';
import type { StoreUnderTest } from './store.scene.promises.ts';

/** `make` returns an empty store; it is called once per test and per run of a property. */
export function describeStore(name: string, make: () => Promise<StoreUnderTest>): void {
  describe(`the store in ${name}`, () => {
    describeHolds(make);
    describeEndings(make);
    describeMoney(make);
    describeRates(make);
    describeEpochs(make);
  });
}
