// How long may the database keep silent? (DESIGN 10, Time)
import type { Millis } from '#core/ports/money.ts';

/** A client waits for it, and is told 503 within 2 s. */
export const GATEWAY_LIMIT: Millis = 1800;

/** Reconcile and bookings: 5 s. */
export const BACKGROUND_LIMIT: Millis = 4500;

/** What one process does for all, in steps that each keep a limit of their own. */
export const ERRAND_LIMIT: Millis = 60_000;
