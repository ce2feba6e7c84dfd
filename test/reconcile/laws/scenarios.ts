// What happens to a world, so that the run after it has something to do? Between them they make every kind of action
// due.
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { runDeployment, runKnative } from '../controllers.ts';
import type { Harness } from '../harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../objects.ts';

export interface Scenario {
  readonly name: string;
  /** From an empty harness to the moment before the run that is looked at. */
  readonly prepare: (harness: Harness) => Promise<void>;
}

const HOUR = 3_600_000;
const ROTATE = 'auth.gateway-operator.dev/rotate';
const INSTANCE = 'instance.gateway-operator.dev';

export const file = () => [
  ...makeSecrets(),
  makeInstance(),
  makeTeam({ members: [{ name: 'alice' }] }),
  makeUser(),
  makeKey({ teamRef: { name: 'research' } }),
];

/** A world that had converged, and then this. */
const then =
  (change: (harness: Harness) => Promise<unknown>, objects: () => ReadonlyArray<KubeObject> = file) =>
  async (harness: Harness): Promise<void> => {
    await harness.apply(...objects());
    await harness.resync();
    await change(harness);
  };

export const annotated = (object: KubeObject, annotations: Readonly<Record<string, string>>): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, annotations },
});

const rotate = (harness: Harness, text: string) =>
  harness.edit(virtualKeys, 'chat', { metadata: { annotations: { [ROTATE]: text } } });

/** Somebody removes a finalizer by hand, and then the object. */
export async function lose(harness: Harness, name: string): Promise<void> {
  await harness.edit(virtualKeys, name, { metadata: { finalizers: [] } });
  await harness.remove(virtualKeys, name);
}

/** Gateways run in the cluster. */
async function withWorkload(harness: Harness, type: 'Deployment' | 'Knative', scale: object = { min: 1, max: 3 }) {
  harness.servedAt = 'nobody';
  harness.knative = true;
  const store = makeSecret('store', { host: 'redis', port: '6379', password: '' });
  await harness.apply(...makeSecrets(), store, makeInstance({ workload: { type, scale } }), makeKey());
}

const deployed = async (harness: Harness) => {
  await withWorkload(harness, 'Deployment');
  await harness.resync();
  await runDeployment(harness);
  await harness.resync();
};

export const scenarios: ReadonlyArray<Scenario> = [
  { name: 'nothing was there', prepare: async (harness) => harness.apply(...file()) },
  { name: 'a Secret was lost', prepare: then((harness) => harness.remove(RESOURCES.secrets, 'chat-key')) },
  {
    name: 'a Secret was edited',
    prepare: then((harness) => harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } })),
  },
  {
    name: 'a Secret was edited where the true value is shown nowhere',
    prepare: async (harness) => {
      await harness.apply(...file());
      await harness.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
      await harness.resync();
      await harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
      await harness.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Full' } });
    },
  },
  {
    name: "a key's Secret has another name and other entries",
    prepare: then((harness) =>
      harness.edit(virtualKeys, 'chat', {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the mark of the template
        spec: { secretTemplate: { name: 'chat-env', data: { OPENAI_API_KEY: '${key}' } } },
      }),
    ),
  },
  {
    name: "a user's key has another alias",
    prepare: async (harness) => {
      await harness.apply(...file());
      await harness.edit(users, 'alice', { spec: { keyAlias: 'old' } });
      await harness.resync();
      await harness.edit(users, 'alice', { spec: { keyAlias: 'alice-key' } });
    },
  },
  {
    name: 'a user and a team were edited',
    prepare: then(async (harness) => {
      await harness.edit(users, 'alice', { spec: { maxBudget: '30', rpmLimit: 5, models: ['small'] } });
      await harness.edit(teams, 'research', { spec: { budgetDuration: '7d', blocked: true } });
    }),
  },
  {
    name: "a user's key has no owner, as after a restore",
    prepare: then((harness) => harness.edit(virtualKeys, 'alice', { metadata: { ownerReferences: [] } })),
  },
  {
    name: 'a user wants no key any more',
    prepare: then((harness) => harness.edit(users, 'alice', { spec: { autoCreateKey: false } })),
  },
  {
    name: 'a key, a user and a team are deleted',
    prepare: then(async (harness) => {
      await harness.remove(virtualKeys, 'chat');
      await harness.remove(users, 'alice');
      await harness.remove(teams, 'research');
    }),
  },
  {
    name: 'a key that is retained is deleted',
    prepare: async (harness) => {
      await harness.apply(...file());
      await harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
      await harness.resync();
      await harness.remove(virtualKeys, 'chat');
    },
  },
  {
    name: 'a retained key finds another object',
    prepare: async (harness) => {
      await harness.apply(...file());
      await harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
      await harness.resync();
      await harness.remove(virtualKeys, 'chat');
      await harness.resync();
      await harness.apply(makeKey());
    },
  },
  {
    name: 'an object was lost with its finalizer, and made anew under its name',
    prepare: then(async (harness) => {
      await lose(harness, 'chat');
      await harness.apply(makeKey({ teamRef: { name: 'research' } }));
    }),
  },
  {
    name: 'an object and its Secret were lost, and the object made anew under its name',
    prepare: then(async (harness) => {
      await lose(harness, 'chat');
      harness.cluster.collectGarbage();
      await harness.apply(makeKey({ teamRef: { name: 'research' } }));
    }),
  },
  {
    name: 'an instance was made anew',
    prepare: then(async (harness) => {
      await harness.remove(gatewayInstances, 'main');
      await harness.resync();
      await harness.apply(makeInstance());
    }),
  },
  { name: 'an instance is deleted', prepare: then((harness) => harness.remove(gatewayInstances, 'main')) },
  {
    name: 'an instance went while its database was away',
    prepare: async (harness) => {
      await harness.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } });
      await harness.apply(...file(), makeInstance({}, 'second'));
      await harness.resync();
      await harness.edit(gatewayInstances, 'second', { metadata: { finalizers: [] } });
      await harness.remove(gatewayInstances, 'second');
    },
  },
  {
    name: 'a key is due to be rotated',
    prepare: async (harness) => {
      await harness.apply(...file());
      await harness.edit(virtualKeys, 'chat', { spec: { rotation: { every: '1h', overlap: '30m' } } });
      await harness.resync();
      harness.clock.pass(HOUR);
    },
  },
  {
    name: 'a key is due to be rotated and edited at the same time',
    prepare: async (harness) => {
      await harness.apply(...file());
      await harness.edit(virtualKeys, 'chat', { spec: { rotation: { every: '1h', overlap: '30m' } } });
      await harness.resync();
      harness.clock.pass(HOUR);
      await harness.edit(virtualKeys, 'chat', {
        spec: { maxBudget: '12', secretTemplate: { labels: { app: 'chat' } } },
      });
    },
  },
  {
    name: 'an annotation asks for a rotation, and the overlap of the previous one is over',
    prepare: then(async (harness) => {
      await rotate(harness, 'once');
      await harness.resync();
      await rotate(harness, 'twice');
      harness.clock.pass(2 * HOUR);
    }),
  },
  {
    name: 'an instance was made anew and names the ledger of the previous one',
    prepare: then(async (harness) => {
      const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
      await harness.remove(gatewayInstances, 'main');
      await harness.resync();
      await harness.apply(annotated(makeInstance(), { [`${INSTANCE}/adopt-ledger`]: uid }));
    }),
  },
  {
    name: 'more was lost than is plausible, and a person lets it go',
    prepare: then(
      async (harness) => {
        for (let index = 0; index < 11; index += 1) await lose(harness, `k${index}`);
        await harness.resync();
        const annotations = { [`${INSTANCE}/deletion-share`]: '100%' };
        await harness.edit(gatewayInstances, 'main', { metadata: { annotations } });
      },
      () => [...file(), ...Array.from({ length: 11 }, (_, index) => makeKey({}, `k${index}`))],
    ),
  },
  {
    name: 'gateways are to run in the cluster',
    prepare: (harness) => withWorkload(harness, 'Deployment'),
  },
  {
    name: 'a gateway runs outside the cluster',
    prepare: async (harness) => {
      harness.keepSnapshots();
      const workload = { type: 'External', url: 'https://gateway.example.com' };
      await harness.apply(...makeSecrets(), makeInstance({ workload }), makeKey());
    },
  },
  {
    name: 'models of a gateway in the cluster changed for the third time',
    prepare: async (harness) => {
      await deployed(harness);
      harness.clock.pass(HOUR);
      for (const retries of [3, 4]) {
        await harness.edit(gatewayInstances, 'main', { spec: { routing: { retries } } });
        await harness.resync();
        await runDeployment(harness);
        await harness.resync();
        harness.clock.pass(HOUR);
      }
      await harness.edit(gatewayInstances, 'main', { spec: { routing: { retries: 5 } } });
      await harness.resync();
      await runDeployment(harness);
    },
  },
  {
    name: 'what runs a gateway was changed by hand, and its scale leaves nothing to decide',
    prepare: async (harness) => {
      await deployed(harness);
      await harness.edit({ group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' }, 'main-gateway', {
        spec: { progressDeadlineSeconds: 9 },
      });
      await harness.edit(gatewayInstances, 'main', { spec: { workload: { scale: { min: 2, max: 2 } } } });
    },
  },
  {
    name: 'a Deployment gives way to a Knative Service that serves',
    prepare: async (harness) => {
      await deployed(harness);
      await harness.edit(gatewayInstances, 'main', { spec: { workload: { type: 'Knative', scale: null } } });
      await harness.resync();
      await runKnative(harness);
    },
  },
];
