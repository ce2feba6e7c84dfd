// What brings an instance to what its spec says? Finalizer, database, snapshot, and what runs its gateway.
import { LARGEST_SNAPSHOT } from '#core/compile.ts';
import type { Action } from '../action.ts';
import { type InstanceView, idOf, pathOf, type SnapshotView } from '../world.ts';
import { about } from './about.ts';
import { hasFinalizer, isDeleted, planInstanceDeletion } from './deletion.ts';
import { ledgerAskedFor, planStrays } from './ledger.ts';
import type { Outlook } from './outlook.ts';
import { planWorkload } from './workload.ts';

/** Beside the one that is published: what pods and revisions that still run may have mounted. */
const KEPT = 2;

export function planInstance(view: InstanceView, outlook: Outlook): Action[] {
  const { object, database } = view;
  if (isDeleted(object)) return planInstanceDeletion(view, outlook);
  if (object.spec.paused || outlook.world.failures.has(idOf(object.kind, object.metadata))) return [];
  const finalizer: Action[] = hasFinalizer(object)
    ? []
    : [{ action: 'AddFinalizer', ...about(object, 'it will be recorded in its database') }];
  const opens = database.ok && !database.opened;
  const open: Action[] = opens
    ? [
        {
          action: 'OpenDatabase',
          ...about(object, whyOpen(view, database.message)),
          instance: pathOf(object.metadata),
        },
      ]
    : [];
  return [...finalizer, ...planStrays(view), ...open, ...planSnapshot(view, outlook), ...planWorkload(view)];
}

/** What another instance's ledger holds is read when it is adopted: a dry run does not know it. */
function whyOpen({ object, adopted }: InstanceView, where: string): string {
  const ledger = ledgerAskedFor(object);
  const adopts = ledger !== undefined && adopted === undefined;
  const on = adopts ? `, and it goes on with the keys and the spend of instance ${ledger.uid} if that is closed` : '';
  return `${where} was not opened by this process yet: it is migrated where it is due${on}`;
}

function planSnapshot(view: InstanceView, outlook: Outlook): Action[] {
  const { object, snapshot } = view;
  if (snapshot.bytes > LARGEST_SNAPSHOT) return [];
  if (!snapshot.published) {
    return [
      {
        action: 'PublishSnapshot',
        ...about(object, `its compiled models are ${snapshot.name}`),
        snapshot: snapshot.name,
      },
    ];
  }
  return superfluous(view, outlook).map(({ name, uid }) => ({
    action: 'DeleteSnapshot',
    ...about(object, `${snapshot.name} took the place of ${name}`),
    snapshot: name,
    uid,
  }));
}

/** While a rollout is under way, Pods of any earlier one may still have to start. */
export function superfluous(view: InstanceView, outlook: Outlook): SnapshotView['older'] {
  const { object, snapshot } = view;
  if (!snapshot.published || !outlook.judge(view).workload.isCurrent) return [];
  const inUse = `${object.metadata.name}-${object.status?.snapshotHash}`;
  return snapshot.older.slice(KEPT - 1).filter(({ name }) => name !== inUse);
}
