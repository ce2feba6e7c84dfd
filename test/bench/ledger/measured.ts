// The measured ledger: scopes that pay, over a given store, with a database and a journal that cost nothing.
import { randomUUID } from 'node:crypto';
import type { Journal } from '#core/ports/journal.ts';
import type { ReservationParams, Settlement } from '#core/ports/ledger.ts';
import type { LedgerDatabase } from '#core/ports/ledger-database.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';
import { nodeDependencies } from '../../../infra/runtime/node/platform.ts';
import { createMemoryEpochs } from '../../doubles/epochs.ts';
import { createMemoryLedgerDatabase } from '../../doubles/ledger-database.ts';
import { createMemoryLedgerRows } from '../../doubles/ledger-rows.ts';

const HOUR = 3_600_000;
const log: Log = { info: () => undefined, warn: () => undefined, error: console.error };
const metrics: Metrics = { add: () => undefined, set: () => undefined, observe: () => undefined };

/** Dependencies of every ledger of the bench. */
export const SURROUNDINGS = {
  ...nodeDependencies(),
  log,
  metrics,
};

/** A database and a journal that keep nothing: booking and the disk are measured elsewhere. */
const { clock } = SURROUNDINGS;
export const EPOCHS = createMemoryEpochs({ clock });
const bookBatch: LedgerDatabase['bookBatch'] = async () => ({ outcome: 'booked', rejected: [] });
export const SINK = { ...createMemoryLedgerRows(), ...createMemoryLedgerDatabase({ epochs: EPOCHS }), bookBatch };
export const NO_JOURNAL: Journal = {
  append: async () => undefined,
  replay: async () => [],
  drop: () => undefined,
  discard: () => undefined,
  close: async () => undefined,
};

const ANCHOR = Math.floor(Date.now() / HOUR) * HOUR - 24 * HOUR;

/** A budget of a million dollars a month. */
export const makeScope = (kind: ScopePolicy['kind'], scopeId: string = randomUUID()): ScopePolicy => ({
  scopeId,
  kind,
  name: scopeId,
  blocked: false,
  models: [],
  anchor: ANCHOR,
  budget: { limit: '1000000000000000', duration: '30d', alignment: 'Rolling' },
});

export const COST = 15_600n;

export const requestOf = (scopes: ReadonlyArray<ScopePolicy>): ReservationParams => ({
  scopes,
  amount: 2n * COST,
  minAmount: COST,
  model: 'sample-small',
  identifier: 'sample-small-1',
});

export const SETTLEMENT: Settlement = {
  cost: COST,
  tokens: { input: 24, output: 20, cachedInput: 0, cacheWrite: 0 },
  model: 'sample-small',
  identifier: 'sample-small-1',
  estimated: false,
};
