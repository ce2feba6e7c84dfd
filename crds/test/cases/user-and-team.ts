// Users and Teams: good ones, and the violations of the others.
import { accept, type Case, refuse } from './case.ts';

export const usersAndTeams: readonly Case[] = [
  accept('User', 'with only what is required'),
  refuse('User', 'without an e-mail address', { 'spec.userEmail': undefined }, ['Required', 'spec.userEmail']),
  ...['ada', 'ada@', '@example.com', 'a b@example.com', 'a@b@c', ''].map((email) =>
    refuse('User', `of the address ${JSON.stringify(email)}`, { 'spec.userEmail': email }, [
      'Malformed',
      'spec.userEmail',
    ]),
  ),
  refuse(
    'User',
    'whose key has no alias, budget or window',
    { 'spec.autoCreateKey': true },
    ['AutoCreateKeyNeedsField', 'spec.keyAlias'],
    ['AutoCreateKeyNeedsField', 'spec.maxBudget'],
    ['AutoCreateKeyNeedsField', 'spec.budgetDuration'],
  ),
  accept('User', 'with a key', {
    'spec.autoCreateKey': true,
    'spec.keyAlias': 'ada',
    'spec.maxBudget': '10',
    'spec.budgetDuration': '30d',
    'spec.duration': '1mo',
    'spec.userAlias': 'Ada L.',
    'spec.models': ['gpt-4o'],
    'spec.teamRefs': [{ name: 'search' }, { name: 'ads' }],
    'spec.rpmLimit': 60,
    'spec.blocked': false,
    'spec.budgetWindow': 'Calendar',
    'spec.budgetTimeZone': 'Europe/Berlin',
  }),
  refuse('User', 'that is in a team twice', { 'spec.teamRefs': [{ name: 'search' }, { name: 'search' }] }, [
    'Duplicate',
    'spec.teamRefs[1].name',
  ]),
  accept(
    'User',
    'whose alias and connection were changed',
    { 'spec.keyAlias': 'b', 'spec.connectionRef.instanceRef.name': 'other' },
    { 'spec.keyAlias': 'a' },
  ),
  accept('Team', 'with only what is required'),
  refuse('Team', 'without an alias', { 'spec.teamAlias': undefined }, ['Required', 'spec.teamAlias']),
  accept('Team', 'with everything', {
    'spec.models': ['gpt-4o'],
    'spec.maxBudget': '100',
    'spec.budgetDuration': '1w',
    'spec.budgetWindow': 'Calendar',
    'spec.budgetTimeZone': 'Asia/Tokyo',
    'spec.blocked': true,
    'spec.tpmLimit': 5,
    'spec.members': [{ name: 'ada' }, { name: 'bob' }],
  }),
  ...(['User', 'Team'] as const).flatMap((kind) => [
    refuse(kind, 'with an unknown window', { 'spec.budgetWindow': 'Monthly' }, ['NotInEnum', 'spec.budgetWindow']),
    refuse(kind, 'with a time zone that is none', { 'spec.budgetTimeZone': 'Berlin time' }, [
      'Malformed',
      'spec.budgetTimeZone',
    ]),
  ]),
  refuse('Team', 'with a member twice', { 'spec.members': [{ name: 'ada' }, { name: 'ada' }] }, [
    'Duplicate',
    'spec.members[1].name',
  ]),
  refuse('Team', 'with a member without a name', { 'spec.members': [{}] }, ['Required', 'spec.members[0].name']),
];
