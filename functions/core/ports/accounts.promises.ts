// Promises of all stores of accounts, in memory, in Redis or over HTTPS: LEDGER 1 to 6, as far as a store shows them.
import { describe } from 'vitest';
import { describeAsks } from './accounts.asks.promises.ts';
import type { AccountsUnderTest } from './accounts.scene.promises.ts';

/** `make` returns an empty store; it is called once per test and per run of a property. */
export function describeAccounts(name: string, make: () => Promise<AccountsUnderTest>): void {
  describe(`the accounts in ${name}`, () => {
    describeAsks(make);
  });
}
