// What does deleting a user or a team do to keys? Said before it goes.
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { Action } from '../action.ts';
import { about } from './about.ts';
import { isDeleted } from './deletion.ts';
import type { Outlook } from './outlook.ts';
import { ownedKeyOf } from './owned-key.ts';

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
  ];
  if (sentences.length === 0) return [];
  const told = { type: 'Normal', reason: 'Deleting', message: sentences.join('. '), once: `Deleting/${uid}` } as const;
  return [{ action: 'RecordEvent', ...about(member, 'people are told Deleting'), ...told }];
}

function toSentence(names: ReadonlyArray<string>, kind: 'User' | 'Team'): string {
  const which = names.slice(0, MOST_NAMES).map((name) => JSON.stringify(name));
  const more = names.length > MOST_NAMES ? ', …' : '';
  const [who, stop] = names.length === 1 ? ['1 key names', 'stops'] : [`${names.length} keys name`, 'stop'];
  return `${who} it and ${stop} working until a ${kind} of this name is back: ${which.join(', ')}${more}`;
}
