// The kind Team: users who share a budget.
import * as z from 'zod';
import type { AUTH_API_VERSION } from '../names/group.ts';
import type { KubeObject } from '../names/object-meta.ts';
import { listBy } from '../validation/rule.ts';
import { FreeText, LocalRef, scopeSpec, scopeStatus } from './shared-fields.ts';

export const TeamSpec = z.object({
  teamAlias: FreeText.describe(
    'What the team is called; unique in the instance. After a change, spend and window continue. While another Team has the new name, the Team is not `Ready` (`AliasTaken`).',
  ),
  ...scopeSpec('team'),
  members: listBy('name', LocalRef, 1024)
    .default([])
    .describe('The Users of the team. It is enough if the User or the Team names the other.'),
});
export type TeamSpec = z.output<typeof TeamSpec>;

export const TeamStatus = z.object(scopeStatus('team'));
export type TeamStatus = z.output<typeof TeamStatus>;

export type Team = KubeObject<typeof AUTH_API_VERSION, 'Team', TeamSpec, TeamStatus>;

export const schemas = { spec: TeamSpec, status: TeamStatus };
