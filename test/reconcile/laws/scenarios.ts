// What happens to a world, so that the run after it has something to do? Between them they make every kind of action due.
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds.ts';
import type { Bed } from '../bed.ts';
import { runDeployment, runKnative } from '../controllers.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../objects.ts';

export interface Scenario {
  readonly name: string;
  /** From an empty bed to the moment before the run that is looked at. */
  readonly prepare: (bed: Bed) => Promise<void>;
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
  (change: (bed: Bed) => Promise<unknown>, objects: () => ReadonlyArray<KubeObject> = file) =>
  async (bed: Bed): Promise<void> => {
    await bed.apply(...objects());
    await bed.sweep();
    await change(bed);
  };

export const annotated = (object: KubeObject, annotations: Readonly<Record<string, string>>): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, annotations },
});

const rotate = (bed: Bed, text: string) =>
  bed.edit(virtualKeys, 'chat', { metadata: { annotations: { [ROTATE]: text } } });

/** Somebody removes a finalizer by hand, and then the object. */
export async function lose(bed: Bed, name: string): Promise<void> {
  await bed.edit(virtualKeys, name, { metadata: { finalizers: [] } });
  await bed.remove(virtualKeys, name);
}

/** Gateways run in the cluster. */
async function withWorkload(bed: Bed, type: 'Deployment' | 'Knative', scale: object = { min: 1, max: 3 }) {
  bed.servedAt = 'nobody';
  bed.knative = true;
  const store = makeSecret('store', { host: 'redis', port: '6379', password: '' });
  await bed.apply(...makeSecrets(), store, makeInstance({ workload: { type, scale } }), makeKey());
}

const deployed = async (bed: Bed) => {
  await withWorkload(bed, 'Deployment');
  await bed.sweep();
  await runDeployment(bed);
  await bed.sweep();
};

export const scenarios: ReadonlyArray<Scenario> = [
  { name: 'nothing was there', prepare: async (bed) => bed.apply(...file()) },
  { name: 'a Secret was lost', prepare: then((bed) => bed.remove(RESOURCES.secrets, 'chat-key')) },
  {
    name: 'a Secret was edited',
    prepare: then((bed) => bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } })),
  },
  {
    name: 'a Secret was edited where the true value is shown nowhere',
    prepare: async (bed) => {
      await bed.apply(...file());
      await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Redacted' } });
      await bed.sweep();
      await bed.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } });
      await bed.edit(gatewayInstances, 'main', { spec: { keyValueInStatus: 'Full' } });
    },
  },
  {
    name: "a key's Secret has another name and other entries",
    prepare: then((bed) =>
      bed.edit(virtualKeys, 'chat', {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the mark of the template
        spec: { secretTemplate: { name: 'chat-env', entries: { OPENAI_API_KEY: '${key}' } } },
      }),
    ),
  },
  {
    name: "a user's key has another alias",
    prepare: async (bed) => {
      await bed.apply(...file());
      await bed.edit(users, 'alice', { spec: { keyAlias: 'old' } });
      await bed.sweep();
      await bed.edit(users, 'alice', { spec: { keyAlias: 'alice-key' } });
    },
  },
  {
    name: 'a user and a team were edited',
    prepare: then(async (bed) => {
      await bed.edit(users, 'alice', { spec: { maxBudget: '30', rpmLimit: 5, models: ['small'] } });
      await bed.edit(teams, 'research', { spec: { budgetDuration: '7d', blocked: true } });
    }),
  },
  {
    name: 'a user wants no key any more',
    prepare: then((bed) => bed.edit(users, 'alice', { spec: { autoCreateKey: false } })),
  },
  {
    name: 'a key, a user and a team are deleted',
    prepare: then(async (bed) => {
      await bed.remove(virtualKeys, 'chat');
      await bed.remove(users, 'alice');
      await bed.remove(teams, 'research');
    }),
  },
  {
    name: 'a key that is retained is deleted',
    prepare: async (bed) => {
      await bed.apply(...file());
      await bed.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
      await bed.sweep();
      await bed.remove(virtualKeys, 'chat');
    },
  },
  {
    name: 'a retained key finds another object',
    prepare: async (bed) => {
      await bed.apply(...file());
      await bed.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
      await bed.sweep();
      await bed.remove(virtualKeys, 'chat');
      await bed.sweep();
      await bed.apply(makeKey());
    },
  },
  {
    name: 'an object was lost with its finalizer, and made anew under its name',
    prepare: then(async (bed) => {
      await lose(bed, 'chat');
      await bed.apply(makeKey({ teamRef: { name: 'research' } }));
    }),
  },
  {
    name: 'an object and its Secret were lost, and the object made anew under its name',
    prepare: then(async (bed) => {
      await lose(bed, 'chat');
      bed.cluster.collectGarbage();
      await bed.apply(makeKey({ teamRef: { name: 'research' } }));
    }),
  },
  {
    name: 'an instance was made anew',
    prepare: then(async (bed) => {
      await bed.remove(gatewayInstances, 'main');
      await bed.sweep();
      await bed.apply(makeInstance());
    }),
  },
  { name: 'an instance is deleted', prepare: then((bed) => bed.remove(gatewayInstances, 'main')) },
  {
    name: 'an instance went while its database was away',
    prepare: async (bed) => {
      await bed.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } });
      await bed.apply(...file(), makeInstance({}, 'second'));
      await bed.sweep();
      await bed.edit(gatewayInstances, 'second', { metadata: { finalizers: [] } });
      await bed.remove(gatewayInstances, 'second');
    },
  },
  {
    name: 'a key is due to be rotated',
    prepare: async (bed) => {
      await bed.apply(...file());
      await bed.edit(virtualKeys, 'chat', { spec: { rotation: { every: '1h', overlap: '30m' } } });
      await bed.sweep();
      bed.clock.pass(HOUR);
    },
  },
  {
    name: 'a key is due to be rotated and edited at once',
    prepare: async (bed) => {
      await bed.apply(...file());
      await bed.edit(virtualKeys, 'chat', { spec: { rotation: { every: '1h', overlap: '30m' } } });
      await bed.sweep();
      bed.clock.pass(HOUR);
      await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '12', secretTemplate: { labels: { app: 'chat' } } } });
    },
  },
  {
    name: 'an annotation asks for a rotation, and the overlap of the one before is over',
    prepare: then(async (bed) => {
      await rotate(bed, 'once');
      await bed.sweep();
      await rotate(bed, 'twice');
      bed.clock.pass(2 * HOUR);
    }),
  },
  {
    name: 'an instance was made anew and names the ledger of the one before',
    prepare: then(async (bed) => {
      const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
      await bed.remove(gatewayInstances, 'main');
      await bed.sweep();
      await bed.apply(annotated(makeInstance(), { [`${INSTANCE}/adopt-ledger`]: uid }));
    }),
  },
  {
    name: 'more was lost than is plausible, and a person lets it go',
    prepare: then(
      async (bed) => {
        for (let index = 0; index < 11; index += 1) await lose(bed, `k${index}`);
        await bed.sweep();
        const annotations = { [`${INSTANCE}/deletion-share`]: '100%' };
        await bed.edit(gatewayInstances, 'main', { metadata: { annotations } });
      },
      () => [...file(), ...Array.from({ length: 11 }, (_, index) => makeKey({}, `k${index}`))],
    ),
  },
  {
    name: 'gateways are to run in the cluster',
    prepare: (bed) => withWorkload(bed, 'Deployment'),
  },
  {
    name: 'models of a gateway in the cluster changed for the third time',
    prepare: async (bed) => {
      await deployed(bed);
      bed.clock.pass(HOUR);
      for (const retries of [3, 4]) {
        await bed.edit(gatewayInstances, 'main', { spec: { routing: { retries } } });
        await bed.sweep();
        await runDeployment(bed);
        await bed.sweep();
        bed.clock.pass(HOUR);
      }
      await bed.edit(gatewayInstances, 'main', { spec: { routing: { retries: 5 } } });
      await bed.sweep();
      await runDeployment(bed);
    },
  },
  {
    name: 'what runs a gateway was changed by hand, and its scale leaves nothing to decide',
    prepare: async (bed) => {
      await deployed(bed);
      await bed.edit({ group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' }, 'main-gateway', {
        spec: { progressDeadlineSeconds: 9 },
      });
      await bed.edit(gatewayInstances, 'main', { spec: { workload: { scale: { min: 2, max: 2 } } } });
    },
  },
  {
    name: 'a Deployment gives way to a Knative Service that serves',
    prepare: async (bed) => {
      await deployed(bed);
      await bed.edit(gatewayInstances, 'main', { spec: { workload: { type: 'Knative', scale: null } } });
      await bed.sweep();
      await runKnative(bed);
    },
  },
];
