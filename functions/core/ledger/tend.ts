// What does a sweep do for an instance’s ledger, wherever its gateways run, and when none does? It books what is unbooked, and audits (LEDGER 5, 8).
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { type AuditDependencies, auditAll } from './audit.ts';
import { drain } from './drain.ts';
import { within } from './within.ts';

export interface TendDependencies extends AuditDependencies {
  readonly epochs: Epochs;
}

const SILENCE: Millis = 2000;

/** A store that is new, being rebuilt, or gone back in time is left to the next gateway that needs it. Throws when store or PostgreSQL are away. */
export async function tend(deps: TendDependencies): Promise<void> {
  const { epochs, store, timer } = deps;
  const { epoch, isOpen, marks } = await within(timer, SILENCE, 'PostgreSQL', epochs.state());
  if (!isOpen) return;
  const nothing = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
  const answer = await within(timer, SILENCE, 'the store', store.call({ ...nothing, epoch, marks }));
  if (answer.outcome === 'epoch') return;
  await drain(deps, 0);
  await auditAll(deps, epoch);
}
