// Our kinds with their schemas, and what `kubectl` shows of each.
import type * as z from 'zod';
import { GatewayInstanceSpec, GatewayInstanceStatus, instanceName } from './gateway-instance.ts';
import { CATEGORY } from './group.ts';
import type { KindName, KindResource } from './resources.ts';
import * as resources from './resources.ts';
import type { Rule } from './rule.ts';
import { TeamSpec, TeamStatus } from './team.ts';
import { UserSpec, UserStatus } from './user.ts';
import { VirtualKeySpec, VirtualKeyStatus } from './virtual-key.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description: string;
  /** 0 in every listing, 1 with `-o wide` only. */
  readonly priority?: 0 | 1;
}

export type { KindName } from './resources.ts';

export interface Kind<Spec = unknown> extends KindResource {
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** One sentence for `kubectl explain` and the reference. */
  readonly description: string;
  readonly spec: z.ZodType<Spec> & Pick<z.ZodObject, 'shape'>;
  readonly status: z.ZodObject;
  /** What `metadata.name` must be beyond what every name is. */
  readonly nameRule?: Rule<string>;
  readonly columns: readonly PrinterColumn[];
  /** Fields that `--field-selector` takes, so that admission looks up one key and not all of them. */
  readonly selectableFields: readonly string[];
}

const ready: PrinterColumn = {
  name: 'Ready',
  type: 'string',
  jsonPath: '.status.conditions[?(@.type=="Ready")].status',
  description: 'Whether it works.',
};
const age: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'When it was created.',
};
const spend: PrinterColumn = {
  name: 'Spend',
  type: 'string',
  jsonPath: '.status.currentSpend',
  description: 'Dollars spent in the current budget window.',
};
const instance = '.spec.connectionRef.instanceRef.name';

const categories = [CATEGORY];

export const gatewayInstances: Kind<GatewayInstanceSpec> = {
  ...resources.gatewayInstances,
  nameRule: instanceName,
  categories,
  shortNames: ['gwi'],
  description:
    'A proxy for language-model requests, with its database, its key-value store and the models that it serves.',
  spec: GatewayInstanceSpec,
  status: GatewayInstanceStatus,
  columns: [
    { name: 'URL', type: 'string', jsonPath: '.status.url', description: 'Base address of the proxy.' },
    ready,
    { name: 'Keys', type: 'integer', jsonPath: '.status.keys.active', description: 'Keys that work.' },
    age,
  ],
  selectableFields: [],
};

export const virtualKeys: Kind<VirtualKeySpec> = {
  ...resources.virtualKeys,
  categories,
  shortNames: ['vk'],
  description: 'An API key for a proxy, with a spend limit, its window, and the models that it may use.',
  spec: VirtualKeySpec,
  status: VirtualKeyStatus,
  columns: [
    { name: 'Alias', type: 'string', jsonPath: '.spec.keyAlias', description: 'Alias of the key.' },
    ready,
    spend,
    age,
    {
      name: 'Soft budget',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="SoftBudgetReached")].status',
      description: 'Whether it has spent its softBudget.',
      priority: 1,
    },
    {
      name: 'Rotation',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Rotation")].reason',
      description: 'Whether a new value is scheduled, or the one before still works.',
      priority: 1,
    },
  ],
  selectableFields: ['.spec.keyAlias', instance],
};

export const users: Kind<UserSpec> = {
  ...resources.users,
  categories,
  shortNames: ['gwuser'],
  description: 'A person with a budget of their own, and a key if wanted.',
  spec: UserSpec,
  status: UserStatus,
  columns: [
    { name: 'E-mail', type: 'string', jsonPath: '.spec.userEmail', description: 'E-mail address.' },
    ready,
    spend,
    age,
    {
      name: 'Alias',
      type: 'string',
      jsonPath: '.spec.userAlias',
      description: 'What the user is called.',
      priority: 1,
    },
  ],
  selectableFields: ['.spec.userEmail', instance],
};

export const teams: Kind<TeamSpec> = {
  ...resources.teams,
  categories,
  shortNames: ['gwteam'],
  description: 'Users who share a budget.',
  spec: TeamSpec,
  status: TeamStatus,
  columns: [
    { name: 'Alias', type: 'string', jsonPath: '.spec.teamAlias', description: 'What the team is called.' },
    ready,
    spend,
    age,
  ],
  selectableFields: ['.spec.teamAlias', instance],
};

/** All kinds, in the order in which they are applied and documented. */
export const kinds: readonly Kind[] = [gatewayInstances, virtualKeys, users, teams];

/** The kind with its schemas. */
export const kindOf: Readonly<Record<KindName, Kind>> = {
  GatewayInstance: gatewayInstances,
  VirtualKey: virtualKeys,
  User: users,
  Team: teams,
};
