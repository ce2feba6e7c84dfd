// The user of epochs whose processes all have one store.
import type { EpochUser } from '#core/ports/epochs.ts';

export const ONE_STORE: EpochUser = { store: 'store', startedAt: 0 };
