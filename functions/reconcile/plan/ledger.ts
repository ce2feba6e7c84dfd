// Whose ledger does an instance go on with, and which instances that are gone left their keys open in its database?
import { type Judgement, toTimestamp } from '#core/conditions.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Adoption, Ledger } from '#core/ports/registry.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { ADOPT_LEDGER_ANNOTATION } from '#crds/group.ts';
import type { Action } from '../action.ts';
import type { Problem } from '../problem.ts';
import { type InstanceView, pathOf } from '../world.ts';
import { about } from './about.ts';

/** So long after an adoption claims wait for their objects: a restore brings the instance first and its keys one by one. */
const ARRIVAL: Millis = 3_600_000;

/** `<uid>`, or `<uid> lost` where nobody can close that instance any more. */
export function ledgerAskedFor({ metadata }: Pick<GatewayInstance, 'metadata'>): Ledger | undefined {
  const text = metadata.annotations?.[ADOPT_LEDGER_ANNOTATION];
  if (text === undefined) return undefined;
  const [uid = '', word] = text.trim().split(/\s+/);
  return { uid, lost: word === 'lost' };
}

export const mayStillArrive = ({ adopted, time }: InstanceView): boolean =>
  adopted !== undefined && time < adopted.at + ARRIVAL;

/** Why a new instance is not opened: with an empty ledger every budget would be whole again. */
export function refusalOf(adoption: Extract<Adoption, { readonly ok: false }>, ledger: string): Problem {
  const uid = JSON.stringify(ledger);
  const why = {
    same: `is this instance's own uid: write that of the instance before it`,
    absent: `is no instance whose keys are in this database: correct it, or spec.databaseSecretRef`,
    open: `is an instance that is not closed: delete it first; if its whole cluster is gone, write "${ledger} lost"`,
    adopted: `goes on already with the instance ${'by' in adoption ? adoption.by : ''}: if that is gone too, write its uid`,
  }[adoption.why];
  const message = `annotation ${ADOPT_LEDGER_ANNOTATION}: ${uid} ${why}; or take the annotation away for a new ledger`;
  return { reason: 'LedgerNotAdopted', message };
}

/** The condition `LedgerAdopted`, while the annotation is there. */
export function judgeLedger({ object, adopted, database }: InstanceView): ReadonlyArray<Judgement> {
  const asked = ledgerAskedFor(object);
  if (asked === undefined || !database.ok || !database.opened) return [];
  const type = 'LedgerAdopted';
  if (adopted?.from === asked.uid) {
    const message = `goes on with the ledger of instance ${asked.uid} since ${toTimestamp(adopted.at)}`;
    return [{ type, status: 'True', reason: 'Adopted', message }];
  }
  const message =
    `it has a ledger of its own already, and keeps it: take the annotation ${ADOPT_LEDGER_ANNOTATION} away, ` +
    'or delete this instance and create it anew with the annotation';
  return [{ type, status: 'False', reason: 'LedgerInUse', message }];
}

/** They were deleted while their database was away: none of their keys may count as live. */
export function planStrays({ object, strays }: InstanceView): Action[] {
  return strays.map(({ uid, namespace, name }) => ({
    action: 'CloseStray',
    ...about(object, `instance ${namespace}/${name} (${uid}) is gone and left its keys open in the same database`),
    instance: pathOf(object.metadata),
    uid,
  }));
}
