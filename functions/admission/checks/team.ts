// Checks of a Team with its alias.
import type { TeamSpec } from '#crds/team.ts';
import type { Check } from '../check.ts';
import type { TeamFacts } from '../facts.ts';
import { aliasFree } from './member.ts';

export const teamAliasFree: Check<TeamSpec, TeamFacts> = (team) =>
  aliasFree(team, 'spec.teamAlias', team.spec.teamAlias, team.facts.aliasHolder);
