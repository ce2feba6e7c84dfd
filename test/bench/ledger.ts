// Cost of money: hold and settle on every store, a store that is wiped, and booking.

import { benchBatches } from './ledger/batches.ts';
import { benchBooking } from './ledger/booking.ts';
import { benchStores } from './ledger/stores.ts';
import { benchWiped } from './ledger/wiped.ts';

/** Less than a minute on a machine with nothing else to do. Without a redis-server it says what it leaves out. */
export async function benchLedger(): Promise<string> {
  return [await benchStores(), await benchBatches(), await benchWiped(), await benchBooking()].join('\n\n');
}
