// What does deleting a user or a team do to keys? Said before it goes.
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { Action } from '../action.ts';
import { pathOf } from '../world.ts';
import { isDeleted } from './deletion.ts';
import type { Outlook } from './outlook.ts';
import { ownedKeyOf } from './owned-key.ts';
import { tell } from './tell.ts';

const MOST_NAMES = 10;

/** One event, while there is anything to say. */
export function planFarewell(member: User | Team, outlook: Outlook): Action[] {
  const { namespace, name, uid } = member.metadata;
  const own = member.kind === 'User' ? ownedKeyOf(member, outlook) : undefined;
  const ownKey = own?.owned === true && own.key !== undefined && !isDeleted(own.key) ? own.key : undefined;
  const naming = [...outlook.world.keys.values()].filter(({ object }) => {
    const { userRef, teamRef } = object.spec;
    const ref = member.kind === 'User' ? userRef : teamRef;
    return object.metadata.namespace === namespace && ref?.name === name && object !== own?.key && !isDeleted(object);
  });
  const retains = ownKey?.spec.deletionPolicy === 'Retain';
  const sentences = [
    ...(ownKey === undefined
      ? []
      : [
          retains
            ? `its VirtualKey "${ownKey.metadata.name}" is deleted with it; its deletionPolicy is Retain: it goes on working until a VirtualKey adopts it`
            : `its VirtualKey "${ownKey.metadata.name}" is deleted with it and stops working`,
        ]),
    ...(naming.length === 0 ? [] : [toSentence(naming.map(({ object }) => object.metadata.name).sort(), member.kind)]),
    ...(member.kind === 'Team' ? ofUsers(member, outlook) : []),
  ];
  if (sentences.length === 0) return [];
  return [tell(member, { type: 'Normal', reason: 'Deleting', message: sentences.join('. '), once: `Deleting/${uid}` })];
}

function toSentence(names: ReadonlyArray<string>, kind: 'User' | 'Team'): string {
  const [who, stop] = names.length === 1 ? ['1 key names', 'stops'] : [`${names.length} keys name`, 'stop'];
  return `${who} it and ${stop} working until a ${kind} of this name is back: ${toList(names)}`;
}

/** Keys that have the team by their user: where the user names it they stop, where only it lists the user they go on. */
function ofUsers(team: Team, { world }: Outlook): string[] {
  const { namespace, name } = team.metadata;
  const listed = new Set(team.spec.members.map((member) => member.name));
  const stopping: string[] = [];
  const goingOn: string[] = [];
  for (const { object: key } of world.keys.values()) {
    const { userRef, teamRef } = key.spec;
    if (key.metadata.namespace !== namespace || isDeleted(key) || userRef === undefined || teamRef !== undefined)
      continue;
    const user = world.users.get(pathOf({ namespace, name: userRef.name }));
    if (user === undefined || isDeleted(user)) continue;
    if (user.spec.teamRefs.some((ref) => ref.name === name)) stopping.push(key.metadata.name);
    else if (listed.has(userRef.name)) goingOn.push(key.metadata.name);
  }
  const until = 'until a Team of this name is back or their users name it no longer';
  return [
    ...(stopping.length === 0
      ? []
      : [
          `${count(stopping)} of users that name it ${stopping.length === 1 ? 'stops' : 'stop'} working ${until}: ${toList(stopping.sort())}`,
        ]),
    ...(goingOn.length === 0
      ? []
      : [`it no longer pays for ${count(goingOn)} of users that only it lists: ${toList(goingOn.sort())}`]),
  ];
}

const count = ({ length }: ReadonlyArray<string>): string => (length === 1 ? '1 key' : `${length} keys`);

function toList(names: ReadonlyArray<string>): string {
  const which = names.slice(0, MOST_NAMES).map((name) => JSON.stringify(name));
  return `${which.join(', ')}${names.length > MOST_NAMES ? ', …' : ''}`;
}
