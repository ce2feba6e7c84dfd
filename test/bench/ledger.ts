// Cost of the ledger: hold and settle on every store, a wiped store, and booking.

import { benchBatches } from './ledger/batches.ts';
import { benchBooking } from './ledger/booking.ts';
import { benchStores } from './ledger/stores.ts';
import { benchWiped } from './ledger/wiped.ts';

/** The tables, in less than a minute on an idle machine. Without a redis-server they say what is left out. */
export async function benchLedger(): Promise<string> {
  return [await benchStores(), await benchBatches(), await benchWiped(), await benchBooking()].join('\n\n');
}
