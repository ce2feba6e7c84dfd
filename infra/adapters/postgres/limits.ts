// How long may the database keep silent? Clients wait less (core/ledger/patience.ts): a late answer is for the next.
import type { Millis } from '#core/ports/money.ts';

/** What a request asks for: a policy, sums, an epoch. */
export const GATEWAY_LIMIT: Millis = 1800;

/** Reconcile and bookings: 5 s. */
export const BACKGROUND_LIMIT: Millis = 4500;
