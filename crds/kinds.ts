// Which kinds are there, and what does `kubectl` show of each?
import type * as z from 'zod';
import { GatewayInstanceSpec, GatewayInstanceStatus } from './gateway-instance.ts';
import { AUTH_GROUP, CATEGORY, INSTANCE_GROUP, VERSION } from './group.ts';
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

export type KindName = 'GatewayInstance' | 'VirtualKey' | 'User' | 'Team';

export interface Kind {
  readonly kind: KindName;
  readonly group: string;
  readonly version: string;
  readonly apiVersion: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** One sentence for `kubectl explain` and the reference. */
  readonly description: string;
  /** What `metadata.name` must be beyond what every name is. The one rule at the root of the CRD; never to be tightened. */
  readonly nameRule?: Rule<string>;
  readonly spec: z.ZodObject;
  readonly status: z.ZodObject;
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

const inGroup = (group: string) => ({
  group,
  version: VERSION,
  apiVersion: `${group}/${VERSION}`,
  categories: [CATEGORY],
});

const INSTANCE_NAME = /^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$/;

/** A Service, a ConfigMap and a path of the gateway are named after the instance. */
const instanceName: Rule<string> = {
  id: 'InstanceName',
  cel: `self.metadata.name.matches('${INSTANCE_NAME.source}')`,
  message:
    'is not the name of an instance; write at most 40 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`',
  holds: (name) => INSTANCE_NAME.test(name),
};

export const gatewayInstances: Kind = {
  ...inGroup(INSTANCE_GROUP),
  kind: 'GatewayInstance',
  plural: 'gatewayinstances',
  singular: 'gatewayinstance',
  shortNames: ['gwi'],
  description:
    'A proxy for language-model requests, with its database, its key-value store and the models that it serves.',
  nameRule: instanceName,
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

export const virtualKeys: Kind = {
  ...inGroup(AUTH_GROUP),
  kind: 'VirtualKey',
  plural: 'virtualkeys',
  singular: 'virtualkey',
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

export const users: Kind = {
  ...inGroup(AUTH_GROUP),
  kind: 'User',
  plural: 'users',
  singular: 'user',
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

export const teams: Kind = {
  ...inGroup(AUTH_GROUP),
  kind: 'Team',
  plural: 'teams',
  singular: 'team',
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
