// Plans as a dry run prints them, compared with reviewed golden files.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';
import { WORKLOAD_OBJECTS } from '../workload/workload-objects.ts';

const file = () => [
  ...makeSecrets(),
  makeInstance(),
  makeTeam({ members: [{ name: 'alice' }] }),
  makeUser(),
  makeKey({ duration: '90d' }),
];
const converged = async (harness: Harness) => {
  await harness.apply(...file());
  await harness.resync();
};

const cases: ReadonlyArray<readonly [string, (harness: Harness) => Promise<unknown>]> = [
  ['first-apply', (harness) => harness.apply(...file())],
  ['unchanged', converged],
  [
    'database-away',
    async (harness) => {
      await harness.apply(...file());
      harness.refuse(true);
    },
  ],
  [
    'database-secret-missing',
    async (harness) => {
      await harness.apply(...file());
      await harness.remove(RESOURCES.secrets, 'db');
    },
  ],
  [
    'budget-raised',
    async (harness) => {
      await converged(harness);
      await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '20', budgetDuration: '7d' } });
    },
  ],
  [
    'secret-lost',
    async (harness) => {
      await converged(harness);
      await harness.remove(RESOURCES.secrets, 'chat-key');
    },
  ],
  [
    'secret-edited',
    async (harness) => {
      await converged(harness);
      await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
    },
  ],
  [
    'secret-renamed',
    async (harness) => {
      await converged(harness);
      await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: { name: 'renamed' } } });
    },
  ],
  [
    'models-changed',
    async (harness) => {
      await converged(harness);
      await harness.edit(gatewayInstances, 'main', {
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
    async (harness) => {
      await converged(harness);
      await harness.edit(users, 'alice', { spec: { keyAlias: 'renamed' } });
    },
  ],
  [
    'user-switched-its-key-off',
    async (harness) => {
      await converged(harness);
      await harness.edit(users, 'alice', { spec: { autoCreateKey: false } });
    },
  ],
  [
    'key-expired',
    async (harness) => {
      await converged(harness);
      harness.clock.pass(91 * 86_400_000);
    },
  ],
  [
    'key-deleted',
    async (harness) => {
      await converged(harness);
      await harness.remove(virtualKeys, 'chat');
    },
  ],
  [
    'key-gone-without-its-finalizer',
    async (harness) => {
      await converged(harness);
      await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
      await harness.remove(virtualKeys, 'chat');
    },
  ],
  [
    'instance-deleted',
    async (harness) => {
      await converged(harness);
      await harness.remove(gatewayInstances, 'main');
    },
  ],
  [
    'namespace-no-longer-allowed',
    async (harness) => {
      await converged(harness);
      await harness.apply(makeKey({ keyAlias: 'far' }, 'far', 'team-a'));
      await harness.resync();
      await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
    },
  ],
  [
    'gateway-is-to-be-deployed',
    async (harness) => {
      harness.servedAt = 'nobody';
      await harness.apply(...makeSecrets(), makeInstance());
    },
  ],
  [
    'gateway-was-edited-by-hand',
    async (harness) => {
      harness.servedAt = 'nobody';
      await harness.apply(...makeSecrets(), makeInstance());
      await harness.resync();
      await harness.edit(WORKLOAD_OBJECTS.Deployment, 'main-gateway', { spec: { replicas: 3 } });
      await harness.remove(WORKLOAD_OBJECTS.Service, 'main-gateway');
    },
  ],
  [
    'instance-paused',
    async (harness) => {
      await harness.apply(...makeSecrets(), makeInstance(), makeKey());
      await harness.resync();
      await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
      await harness.resync();
      await harness.edit(virtualKeys, 'chat', { spec: { blocked: true } });
    },
  ],
  [
    'gateway-moves-elsewhere',
    async (harness) => {
      harness.servedAt = 'nobody';
      await harness.apply(...makeSecrets(), makeInstance());
      await harness.resync();
      const workload = { type: 'External', url: 'https://llm.example.com' };
      await harness.edit(gatewayInstances, 'main', { spec: { workload } });
    },
  ],
];

test.each(cases)('%s', async (name, prepare) => {
  const harness = createHarness();
  await prepare(harness);
  const answer = await harness.app.request('/?dry-run=true', { method: 'POST', headers: { accept: 'text/plain' } });
  await expect(await answer.text()).toMatchFileSnapshot(`golden/${name}.golden.txt`);
});
