// Promises of all stores of accounts, in memory, in Redis or over HTTPS: LEDGER 1 to 6, as far as a store shows them.
import { describe } from 'vitest';
import { describeAsks } from './accounts.asks.promises.ts';
import { describeAudits } from './accounts.audit.promises.ts';
import { describeCalls } from './accounts.calls.promises.ts';
import { describeClosing } from './accounts.closing.promises.ts';
import { describeEpochs } from './accounts.epoch.promises.ts';
import { describeEscrow } from './accounts.escrow.promises.ts';
import { describeMinutes } from './accounts.minutes.promises.ts';
import { describeMoney } from './accounts.money.promises.ts';
import { describeRates } from './accounts.rates.promises.ts';
import type { AccountsUnderTest } from './accounts.scene.promises.ts';

/**
 * `make` returns an empty store; it is called once per test and per run of a property. `clock`: whether the test moves the store's clock. Where
 * it is real, no test waits for more than two seconds, and promises of minutes are left out.
 */
export function describeAccounts(
  name: string,
  make: () => Promise<AccountsUnderTest>,
  clock: 'manual' | 'real' = 'manual',
): void {
  describe(`the accounts in ${name}`, () => {
    describeCalls(make);
    describeAsks(make);
    describeEscrow(make);
    describeMoney(make, clock);
    describeClosing(make);
    describeEpochs(make, clock);
    describeAudits(make);
    describeRates(make);
    if (clock === 'manual') describeMinutes(make);
  });
}
