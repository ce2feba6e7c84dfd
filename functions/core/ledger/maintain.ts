// Maintenance of an instance's ledger by a sweep, with or without a running gateway: drain, then audit (LEDGER 6, 8).
import type { Epochs } from '../ports/epochs.ts';
import { EMPTY_CALL } from '../ports/store.ts';
import { type AuditDependencies, auditAll } from './audit.ts';
import { drain } from './drain.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface MaintainDependencies extends AuditDependencies {
  readonly epochs: Epochs;
}

/** Does nothing for a store that is new, being rebuilt, or gone back in time: the next gateway rebuilds it. Throws when store or PostgreSQL are away. */
export async function maintain(deps: MaintainDependencies): Promise<void> {
  const { epochs, store, timer } = deps;
  const { epoch, isOpen, marks } = await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.state());
  if (!isOpen) return;
  const answer = await withTimeout(timer, TIMEOUT, 'the store', store.call({ ...EMPTY_CALL, epoch, marks }));
  if (answer.outcome === 'epoch') return;
  await drain(deps, 0);
  await auditAll(deps, epoch);
}
