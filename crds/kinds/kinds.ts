// Our kinds with their schemas, and the columns that `kubectl` shows of each.
import type * as z from 'zod';
import type { KindName, KindResource } from '../names/resources.ts';
import * as resources from '../names/resources.ts';
import type { Rule } from '../validation/rule.ts';
import * as gatewayInstance from './gateway-instance.ts';
import * as team from './team.ts';
import * as user from './user.ts';
import * as virtualKey from './virtual-key.ts';

export type { KindName } from '../names/resources.ts';

/** The schemas of a kind; each kind's file exports its own. */
export interface Schemas<Spec = unknown> {
  readonly spec: z.ZodType<Spec> & Pick<z.ZodObject, 'shape'>;
  readonly status: z.ZodObject;
  /** The rule of `metadata.name`, in addition to the rules of every name. */
  readonly nameRule?: Rule<string>;
}

export interface Kind<Spec = unknown> extends KindResource, Schemas<Spec> {
  readonly shortNames: readonly string[];
  /** One sentence for `kubectl explain` and the reference. */
  readonly description: string;
  /** Columns of `kubectl get`: what the object is, whether it works, what people look for, its age. */
  readonly columns: readonly PrinterColumn[];
  /** Fields that `--field-selector` takes, so that admission looks up one key and not all of them. */
  readonly selectableFields: readonly string[];
}

interface PrinterColumn {
  readonly name: string;
  readonly jsonPath: string;
  readonly description: string;
  readonly type: 'string' | 'integer' | 'date';
  /** 1: only with `-o wide`. */
  readonly priority?: 1;
}

const column = (name: string, jsonPath: string, description: string, type: PrinterColumn['type'] = 'string') =>
  ({ name, type, jsonPath, description }) satisfies PrinterColumn;

const ready = column('Ready', '.status.conditions[?(@.type=="Ready")].status', 'Whether it works.');
const age = column('Age', '.metadata.creationTimestamp', 'When it was created.', 'date');
const instance = '.spec.connectionRef.instanceRef.name';
const budget = [
  column('Spend', '.status.currentSpend', 'Dollars spent in the current budget window.'),
  column('Budget', '.spec.maxBudget', 'Dollars that each budget window allows.'),
  // A string: `kubectl` shows a date in the future as invalid.
  column('Resets', '.status.budgetResetDate', 'End of the current budget window.'),
];
/** A column of `-o wide`. */
const wide = (...values: Parameters<typeof column>) => ({ ...column(...values), priority: 1 }) satisfies PrinterColumn;
const reason = wide('Reason', '.status.conditions[?(@.type=="Ready")].reason', 'Reason of the condition Ready.');
const ofInstance = wide('Instance', instance, 'Name of the instance.');

export const gatewayInstances: Kind<gatewayInstance.GatewayInstanceSpec> = {
  ...resources.gatewayInstances,
  ...gatewayInstance.schemas,
  shortNames: ['gwi'],
  description: 'A proxy for language-model requests, with its database, its Redis and the models that it serves.',
  columns: [
    column('URL', '.status.url', 'Base address of the proxy.'),
    ready,
    column('Keys', '.status.keys.active', 'Keys that work.', 'integer'),
    age,
    reason,
  ],
  selectableFields: [],
};

export const virtualKeys: Kind<virtualKey.VirtualKeySpec> = {
  ...resources.virtualKeys,
  ...virtualKey.schemas,
  shortNames: ['vk'],
  description: 'An API key for a proxy, with a spend limit, its window, and the models that it may use.',
  columns: [
    column('Alias', '.spec.keyAlias', 'Alias of the key.'),
    ready,
    ...budget,
    age,
    reason,
    ofInstance,
    wide('Policy', '.status.policy', 'Key policy of the namespace.'),
    wide('Deletion', '.spec.deletionPolicy', 'What a deletion does with the key.'),
  ],
  selectableFields: ['.spec.keyAlias', instance],
};

export const users: Kind<user.UserSpec> = {
  ...resources.users,
  ...user.schemas,
  shortNames: ['gwuser'],
  description: 'A person with a budget of their own, and a key if wanted.',
  columns: [column('Email', '.spec.userEmail', 'E-mail address.'), ready, ...budget, age, reason, ofInstance],
  selectableFields: ['.spec.userEmail', instance],
};

export const teams: Kind<team.TeamSpec> = {
  ...resources.teams,
  ...team.schemas,
  shortNames: ['gwteam'],
  description: 'Users who share a budget.',
  columns: [column('Alias', '.spec.teamAlias', 'What the team is called.'), ready, ...budget, age, reason, ofInstance],
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
