// What is in the cluster beside the good world, let in by the function: what bad objects run into?
import type { KubeObject } from '#core/ports/cluster.ts';
import { GOOD, objectOf, secretOf } from './fixtures.ts';

/** Where an object connects to. */
export const to = (name: string, namespace = 'platform') => ({ connectionRef: { instanceRef: { name, namespace } } });

const held = { finalizers: ['example.com/kept'] };

/** Objects that are deleted and stay for somebody else's finalizer. */
export const LEAVING: ReadonlyArray<KubeObject> = [
  objectOf('GatewayInstance', GOOD.GatewayInstance, { name: 'leaving', ...held }),
  objectOf(
    'User',
    { ...GOOD.User, userEmail: 'leaving@example.com', autoCreateKey: false, teamRefs: [] },
    { name: 'leaving', ...held },
  ),
];

export const AROUND: ReadonlyArray<KubeObject> = [
  objectOf('GatewayInstance', { ...GOOD.GatewayInstance, allowedNamespaces: { from: 'Same' } }, { name: 'closed' }),
  objectOf('GatewayInstance', GOOD.GatewayInstance, { name: 'other' }),
  objectOf('Team', { ...GOOD.Team, ...to('other'), teamAlias: 'elsewhere', members: [] }, { name: 'elsewhere' }),
  objectOf(
    'User',
    { ...GOOD.User, ...to('other'), userEmail: 'e@example.com', autoCreateKey: false, teamRefs: [] },
    { name: 'elsewhere' },
  ),
  secretOf('theirs', { key: 'x' }, 'team-a'),
  ...LEAVING,
];
