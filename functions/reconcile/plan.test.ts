// Does a plan read as a person would tell it? What a dry run prints, held against what was reviewed.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../test/reconcile/objects.ts';
import { PARTS } from './workload/parts.ts';

const file = () => [
  ...makeSecrets(),
  makeInstance(),
  makeTeam({ members: [{ name: 'alice' }] }),
  makeUser(),
  makeKey({ duration: '90d' }),
];
const converged = async (bed: Bed) => {
  await bed.apply(...file());
  await bed.sweep();
};

const cases: ReadonlyArray<readonly [string, (bed: Bed) => Promise<unknown>]> = [
  ['first-apply', (bed) => bed.apply(...file())],
  ['unchanged', converged],
  [
    'database-away',
    async (bed) => {
      await bed.apply(...file());
      bed.refuse(true);
    },
  ],
  [
    'database-secret-missing',
    async (bed) => {
      await bed.apply(...file());
      await bed.remove(RESOURCES.secrets, 'db');
    },
  ],
  [
    'budget-raised',
    async (bed) => {
      await converged(bed);
      await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '20', budgetDuration: '7d' } });
    },
  ],
  [
    'secret-lost',
    async (bed) => {
      await converged(bed);
      await bed.remove(RESOURCES.secrets, 'chat-key');
    },
  ],
  [
    'secret-edited',
    async (bed) => {
      await converged(bed);
      await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
    },
  ],
  [
    'secret-renamed',
    async (bed) => {
      await converged(bed);
      await bed.edit(virtualKeys, 'chat', { spec: { secretTemplate: { name: 'renamed' } } });
    },
  ],
  [
    'models-changed',
    async (bed) => {
      await converged(bed);
      await bed.edit(gatewayInstances, 'main', {
        spec: {
          models: [
            { modelName: 'other', identifier: 'other', requiresAuth: false, gatewayParams: { model: 'ollama/x' } },
          ],
        },
      });
    },
  ],
  [
    'user-renamed-its-key',
    async (bed) => {
      await converged(bed);
      await bed.edit(users, 'alice', { spec: { keyAlias: 'renamed' } });
    },
  ],
  [
    'user-switched-its-key-off',
    async (bed) => {
      await converged(bed);
      await bed.edit(users, 'alice', { spec: { autoCreateKey: false } });
    },
  ],
  [
    'key-expired',
    async (bed) => {
      await converged(bed);
      bed.clock.pass(91 * 86_400_000);
    },
  ],
  [
    'key-deleted',
    async (bed) => {
      await converged(bed);
      await bed.remove(virtualKeys, 'chat');
    },
  ],
  [
    'key-gone-without-its-finalizer',
    async (bed) => {
      await converged(bed);
      await bed.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
      await bed.remove(virtualKeys, 'chat');
    },
  ],
  [
    'instance-deleted',
    async (bed) => {
      await converged(bed);
      await bed.remove(gatewayInstances, 'main');
    },
  ],
  [
    'namespace-not-admitted-any-more',
    async (bed) => {
      await converged(bed);
      await bed.apply(makeKey({ keyAlias: 'far' }, 'far', 'team-a'));
      await bed.sweep();
      await bed.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    },
  ],
  [
    'gateway-is-to-be-deployed',
    async (bed) => {
      bed.servedAt = 'nobody';
      await bed.apply(...makeSecrets(), makeInstance());
    },
  ],
  [
    'gateway-was-edited-by-hand',
    async (bed) => {
      bed.servedAt = 'nobody';
      await bed.apply(...makeSecrets(), makeInstance());
      await bed.sweep();
      await bed.edit(PARTS.Deployment, 'main-gateway', { spec: { replicas: 3 } });
      await bed.remove(PARTS.Service, 'main-gateway');
    },
  ],
  [
    'instance-paused',
    async (bed) => {
      await bed.apply(...makeSecrets(), makeInstance(), makeKey());
      await bed.sweep();
      await bed.edit(gatewayInstances, 'main', { spec: { paused: true } });
      await bed.sweep();
      await bed.edit(virtualKeys, 'chat', { spec: { blocked: true } });
    },
  ],
  [
    'gateway-moves-elsewhere',
    async (bed) => {
      bed.servedAt = 'nobody';
      await bed.apply(...makeSecrets(), makeInstance());
      await bed.sweep();
      const workload = { type: 'External', url: 'https://llm.example.com' };
      await bed.edit(gatewayInstances, 'main', { spec: { workload } });
    },
  ],
];

test.each(cases)('%s', async (name, prepare) => {
  const bed = createBed();
  await prepare(bed);
  const answer = await bed.app.request('/?dry-run=true', { method: 'POST', headers: { accept: 'text/plain' } });
  await expect(await answer.text()).toMatchFileSnapshot(`golden/${name}.golden.txt`);
});
