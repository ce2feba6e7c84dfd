// Our kinds, and where the API server keeps them. Without their schemas, so that naming a kind needs no zod.
import { AUTH_GROUP, INSTANCE_GROUP, VERSION } from './group.ts';

export type KindName = 'GatewayInstance' | 'VirtualKey' | 'User' | 'Team';

export interface KindResource {
  readonly kind: KindName;
  readonly group: string;
  readonly version: string;
  readonly apiVersion: string;
  readonly plural: string;
  readonly singular: string;
}

const inGroup = (group: string) => ({ group, version: VERSION, apiVersion: `${group}/${VERSION}` });

export const gatewayInstances: KindResource = {
  ...inGroup(INSTANCE_GROUP),
  kind: 'GatewayInstance',
  plural: 'gatewayinstances',
  singular: 'gatewayinstance',
};

export const virtualKeys: KindResource = {
  ...inGroup(AUTH_GROUP),
  kind: 'VirtualKey',
  plural: 'virtualkeys',
  singular: 'virtualkey',
};

export const users: KindResource = { ...inGroup(AUTH_GROUP), kind: 'User', plural: 'users', singular: 'user' };

export const teams: KindResource = { ...inGroup(AUTH_GROUP), kind: 'Team', plural: 'teams', singular: 'team' };

export const resources: readonly KindResource[] = [gatewayInstances, virtualKeys, users, teams];
