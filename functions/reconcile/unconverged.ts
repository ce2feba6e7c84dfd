// What has not come to what its spec says, and for how long? The number that an alert is set on.
import type { Millis } from '#core/ports/money.ts';
import type { KindName } from '#crds/kinds.ts';
import type { OwnObject, World } from './world.ts';

export type Unconverged = Readonly<Record<KindName, Millis>>;

/** Not ready because somebody wanted it so: nothing is left to do. */
const WANTED: ReadonlySet<string> = new Set(['Blocked', 'Expired', 'BudgetExceeded']);

/** By kind the age of the oldest: since it stopped being ready, was deleted, or was made. None: 0. */
export function oldestUnconverged({ instances, keys, users, teams, malformed }: World, now: Millis): Unconverged {
  const oldest = { GatewayInstance: 0, VirtualKey: 0, User: 0, Team: 0 };
  for (const { object } of instances.values()) note(oldest, object, now);
  for (const { object } of keys.values()) note(oldest, object, now);
  for (const object of [...users.values(), ...teams.values(), ...malformed.values()]) note(oldest, object, now);
  return oldest;
}

type Seen = Pick<OwnObject, 'kind' | 'metadata'> & { readonly status?: OwnObject['status'] | undefined };

function note(oldest: Record<KindName, Millis>, object: Seen, now: Millis): void {
  const since = sinceWhen(object);
  if (since !== undefined) oldest[object.kind] = Math.max(oldest[object.kind], now - Date.parse(since));
}

function sinceWhen({ metadata, status }: Seen): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return metadata.deletionTimestamp;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined) return metadata.creationTimestamp;
  return ready.status === 'True' || WANTED.has(ready.reason) ? undefined : ready.lastTransitionTime;
}
