// Reviews of the largest objects that the CRDs accept, as an author without good will fills them.
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import {
  ask,
  CONNECTION,
  createWorld,
  depsOf,
  GOOD,
  modelEntry,
  objectOf,
  requestOf,
  secretOf,
} from '../admission/fixtures.ts';
import type { Scenario } from './count.ts';

/** Models of an instance, and of a key: half of what is accepted, so that twice as many are all of it. */
const MODELS = 256;
/** Keys that are restricted to all models. */
const KEYS = 100;
/** Names that differ at their ends alone: a comparison has to read them whole. */
const names = (count: number, end: string, length = 64) =>
  Array.from({ length: count }, (_, index) => `${'m'.repeat(length - 6)}${end}${String(index).padStart(5, '0')}`);

const entries = (served: ReadonlyArray<string>, more: object = {}) =>
  served.map((name) => modelEntry(name, { ...more }));
const instanceOf = (models: ReadonlyArray<object>) => objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models });

async function createCluster(served: ReadonlyArray<string>) {
  const world = await createWorld();
  await world.drop(gatewayInstances, 'platform', 'main');
  await world.put(gatewayInstances, instanceOf(entries(served)));
  for (const name of served) await world.put(RESOURCES.secrets, secretOf(`creds-${name}`, { apiKey: 'x' }));
  return world;
}

const review = (world: Awaited<ReturnType<typeof createCluster>>, object: ReturnType<typeof objectOf>, more = {}) =>
  ask(depsOf(world.cluster), '/validate', requestOf(object, more));

export const scenarios: Readonly<Record<string, Scenario>> = {
  'names that the instance does not serve': {
    n: MODELS,
    prepare: async (n) => {
      const world = await createCluster(names(n, 'a'));
      const key = objectOf('VirtualKey', { ...GOOD.VirtualKey, models: names(n, 'b') });
      return () => review(world, key, { oldObject: key });
    },
  },
  'budgets of models that the instance does not serve': {
    n: 32,
    prepare: async (n) => {
      const world = await createCluster(names(8 * n, 'a'));
      const budgets = names(n, 'b').map((name) => [name, { maxBudget: '0', budgetDuration: '1d' }]);
      const spec = { ...GOOD.VirtualKey, models: [], modelMaxBudget: Object.fromEntries(budgets) };
      return () => review(world, objectOf('VirtualKey', spec));
    },
  },
  'models that keys are restricted to, all of them replaced': {
    n: MODELS,
    prepare: async (n) => {
      const world = await createCluster(names(n, 'a'));
      for (let index = 0; index < KEYS; index += 1) {
        const spec = { ...GOOD.VirtualKey, models: names(n, 'a'), keyAlias: `key ${index}`, connectionRef: CONNECTION };
        await world.put(virtualKeys, objectOf('VirtualKey', spec, { name: `key-${index}` }));
      }
      const oldObject = instanceOf(entries(names(n, 'a')));
      return () => review(world, instanceOf(entries(names(n, 'b'))), { oldObject });
    },
  },
  'entries of providers and credentials that nobody knows, which share one Secret, without prices': {
    n: MODELS,
    prepare: async (n) => {
      const world = await createCluster([]);
      const models = names(n, 'a').map((name, index) => {
        const provider = `openroute${index}`;
        const keys = Object.fromEntries(names(2, `k${index}`, 16).map((credential) => [credential, 'apiKey']));
        const credentials = { nameRef: 'creds-gpt-4o', keys };
        return modelEntry(name, { modelCredentials: credentials, gatewayParams: { model: `${provider}/${name}` } });
      });
      return () => review(world, instanceOf(models), { oldObject: instanceOf(models.toReversed()) });
    },
  },
  'entries of which each breaks several rules': {
    n: MODELS,
    prepare: async (n) => {
      const world = await createCluster([]);
      const broken = { requiresAuth: false, gatewayParams: { model: '/', rpm: -1, weight: -1 }, modelName: ' ' };
      const models = names(n, 'a').map((name) => modelEntry(name, broken));
      return () => review(world, instanceOf(models), { oldObject: instanceOf(models.toReversed()) });
    },
  },
};
