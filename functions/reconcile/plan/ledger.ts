// The ledger of an instance: its own, or that of a closed instance which it goes on with (`adopt-ledger`).
import type { Millis } from '#core/ports/money.ts';
import type { Ledger } from '#core/ports/registry.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { ADOPT_LEDGER_ANNOTATION } from '#crds/group.ts';
import type { InstanceView } from '../world.ts';

/** So long after an adoption claims wait for their objects: a restore brings the instance first and its keys one by one. */
const ARRIVAL: Millis = 3_600_000;

/** `<uid>`, or `<uid> lost` where nobody can close that instance any more. */
export function ledgerAskedFor({ metadata }: Pick<GatewayInstance, 'metadata'>): Ledger | undefined {
  const text = metadata.annotations?.[ADOPT_LEDGER_ANNOTATION];
  if (text === undefined) return undefined;
  const [uid = '', word] = text.trim().split(/\s+/);
  return { uid, lost: word === 'lost' };
}

/** Whether its database has our schema and the instance, with the ledger that it asks for: one that has claims of its own keeps those. */
export function isOpen({ database, object, adopted, claims }: InstanceView): boolean {
  const isSettled = ledgerAskedFor(object) === undefined || adopted !== undefined || claims.size > 0;
  return database.ok && database.isOpen && isSettled;
}

export const mayStillArrive = ({ adopted, time }: InstanceView): boolean =>
  adopted !== undefined && time < adopted.at + ARRIVAL;
