// After what does a plan look at which keys again?
import { expect, test } from 'vitest';
import type { Deed } from './act.ts';
import { type Due, dueAfter, EVERYTHING, type Sight } from './due.ts';

const planned: Due = { steps: new Set(['default/busy']), statuses: 'all', inactive: new Set() };
const sight: Sight = new Map([['default/main', ['uid-1', 1, undefined]]]);

const deed = (action: string, kind: string, name: string, ended: Deed['ended'] = 'done') =>
  ({ action: { action, kind, namespace: 'default', name, why: '' }, ended }) as unknown as Deed;

test('what is done about a key makes that key due, whatever came of it', () => {
  const deeds = [deed('CreateSecret', 'VirtualKey', 'one'), deed('AddValue', 'VirtualKey', 'two', 'failed')];
  const due = dueAfter(planned, deeds, sight, sight);
  expect(due).toEqual({ ...planned, steps: new Set(['default/busy', 'default/one', 'default/two']) });
});

test('what is told of users, teams and instances makes no key due', () => {
  const deeds = ['User', 'Team', 'GatewayInstance'].flatMap((kind) => [
    deed('WriteStatus', kind, 'a'),
    deed('RecordEvent', kind, 'a'),
  ]);
  expect(dueAfter(planned, deeds, sight, sight)).toEqual(planned);
});

test.each([
  ['ClaimAlias', 'User', 'done'],
  ['WritePolicy', 'Team', 'done'],
  ['CreateKey', 'User', 'done'],
  ['WriteStatus', 'Team', 'stale'],
] as const)('%s of a %s that ended %s makes all keys due', (action, kind, ended) => {
  expect(dueAfter(planned, [deed(action, kind, 'a', ended)], sight, sight)).toEqual(EVERYTHING);
});

test('an instance that keys see with other eyes makes all of them due', () => {
  const later: Sight = new Map([['default/main', ['uid-1', 2, undefined]]]);
  for (const [before, after] of [
    [sight, later],
    [sight, new Map()],
    [new Map(), sight],
  ] as const)
    expect(dueAfter(planned, [], before, after)).toEqual(EVERYTHING);
});
