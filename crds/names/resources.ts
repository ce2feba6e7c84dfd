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

function resource(kind: KindName, group: string): KindResource {
  const singular = kind.toLowerCase();
  return { group, version: VERSION, apiVersion: `${group}/${VERSION}`, kind, plural: `${singular}s`, singular };
}

export const gatewayInstances = resource('GatewayInstance', INSTANCE_GROUP);
export const virtualKeys = resource('VirtualKey', AUTH_GROUP);
export const users = resource('User', AUTH_GROUP);
export const teams = resource('Team', AUTH_GROUP);

export const resources: readonly KindResource[] = [gatewayInstances, virtualKeys, users, teams];
