// Promises of every counter store, in memory, in Redis or over HTTPS: the parts of LEDGER 1 to 6 that a store can show.
import { describe } from 'vitest';
import { describeAudits } from './counter-store.audit.promises.ts';
import { describeCalls } from './counter-store.calls.promises.ts';
import { describeClosing } from './counter-store.closing.promises.ts';
import { describeEpochs } from './counter-store.epoch.promises.ts';
import { describeEscrow } from './counter-store.escrow.promises.ts';
import { describeMinutes } from './counter-store.minutes.promises.ts';
import { describeMoney } from './counter-store.money.promises.ts';
import { describeRates } from './counter-store.rates.promises.ts';
import { describeRequests } from './counter-store.requests.promises.ts';
import type { AccountsUnderTest } from './counter-store.scenario.promises.ts';

/**
 * `make` returns an empty store; it is called once per test and per run of a property. `clock`: whether the test moves
 * the store's clock. With a real clock no test waits for more than two seconds, and promises of minutes are left out.
 */
export function describeAccounts(
  name: string,
  make: () => Promise<AccountsUnderTest>,
  clock: 'manual' | 'real' = 'manual',
): void {
  describe(`the accounts in ${name}`, () => {
    describeCalls(make);
    describeRequests(make);
    describeEscrow(make);
    describeMoney(make, clock);
    describeClosing(make);
    describeEpochs(make, clock);
    describeAudits(make);
    describeRates(make);
    if (clock === 'manual') describeMinutes(make);
  });
}
