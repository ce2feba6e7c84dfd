// All cases, of every kind.
import type { Case } from './case.ts';
import { gatewayInstances } from './gateway-instance.ts';
import { keyPolicies } from './key-policy.ts';
import { usersAndTeams } from './user-and-team.ts';
import { virtualKeys } from './virtual-key.ts';

export const cases: readonly Case[] = [...gatewayInstances, ...keyPolicies, ...virtualKeys, ...usersAndTeams];
