// The HTTPRoute or Ingress of an instance: what is written, when the instance has the outside address, and what never
// happens to objects of others.
import { beforeEach, describe, expect, test } from 'vitest';
import { ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { acceptRoute, addressIngress } from '../../../test/reconcile/controllers.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { createWorkloads } from '../../../test/reconcile/workloads.ts';
import { type RouteName, WORKLOAD_OBJECTS } from '../workload/workload-objects.ts';

const INSIDE = 'http://main-gateway.default.svc';
const OUTSIDE = 'https://llm.example.com';
const httpRoute = {
  parentRefs: [{ name: 'public', namespace: 'infra', sectionName: 'https' }, { name: 'private' }],
  hostnames: ['llm.example.com', 'ai.example.com'],
};
const ingress = {
  ingressClassName: 'nginx',
  host: 'llm.example.com',
  tlsSecretName: 'llm-tls',
  annotations: { 'nginx.org/proxy-read-timeout': '630s' },
};
const TYPE = { workload: { type: 'Deployment' } };

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  harness.servedAt = 'nobody';
  await harness.apply(...makeSecrets());
});

const { main, ready, part, there, resyncs, running } = createWorkloads(() => harness);
const edit = (spec: object) => harness.edit(gatewayInstances, 'main', { spec });
const condition = async () => (await main()).conditions?.find(({ type }) => type === 'RouteReady');
const routeReady = async () => {
  const found = await condition();
  return found && `${found.status} ${found.reason}`;
};
const urls = async () => {
  const { url, internalURL } = await main();
  return { url, internalURL };
};
/** Until the Deployment runs and the route is written. */
const routed = async (spec: object) => {
  await running();
  await edit(spec);
  await harness.resync();
};

const KINDS: ReadonlyArray<readonly [RouteName, object, () => Promise<void>]> = [
  ['HTTPRoute', { httpRoute }, () => acceptRoute(harness)],
  ['Ingress', { ingress }, () => addressIngress(harness)],
];

test('an HTTPRoute has the Gateways and host names of the spec, all paths, and waits 30 s longer than the gateway', async () => {
  await running();
  await edit({ httpRoute, routing: { timeouts: { total: '90s' } } });
  await harness.resync();
  expect(part('HTTPRoute')).toMatchObject({
    apiVersion: 'gateway.networking.k8s.io/v1',
    metadata: {
      name: 'main-gateway',
      labels: { 'gateway-operator.dev/managed': 'true' },
      ownerReferences: [{ kind: 'GatewayInstance', name: 'main', controller: true }],
    },
    spec: {
      ...httpRoute,
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          backendRefs: [{ name: 'main-gateway', port: 80 }],
          timeouts: { request: '120s' },
        },
      ],
    },
  });
  await edit({ routing: { timeouts: { total: '30d' } } });
  await harness.resync();
  // The gateway ends each request after an hour.
  expect(part('HTTPRoute')).toMatchObject({ spec: { rules: [{ timeouts: { request: '3630s' } }] } });
});

test('an HTTPRoute has no timeouts if the spec asks for none, because some controllers refuse such a route', async () => {
  await routed({ httpRoute });
  await edit({ httpRoute: { timeouts: 'None' } });
  expect(await resyncs()).toEqual(['apply HTTPRoute']);
  const { rules } = (part('HTTPRoute')?.spec ?? { rules: [] }) as { readonly rules: ReadonlyArray<object> };
  expect(rules.map((rule) => Object.keys(rule).toSorted())).toEqual([['backendRefs', 'matches']]);
  await edit({ httpRoute: { timeouts: null } });
  expect(await resyncs()).toEqual(['apply HTTPRoute']);
  expect(part('HTTPRoute')).toMatchObject({ spec: { rules: [{ timeouts: { request: '630s' } }] } });
});

test('an Ingress has the class, host, certificate and annotations of the spec, and all paths', async () => {
  await routed({ ingress });
  const service = { name: 'main-gateway', port: { number: 80 } };
  expect(part('Ingress')).toMatchObject({
    apiVersion: 'networking.k8s.io/v1',
    metadata: { annotations: ingress.annotations, ownerReferences: [{ kind: 'GatewayInstance', name: 'main' }] },
    spec: {
      ingressClassName: 'nginx',
      tls: [{ hosts: ['llm.example.com'], secretName: 'llm-tls' }],
      rules: [{ host: 'llm.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service } }] } }],
    },
  });
  await edit({ ingress: { tlsSecretName: null, ingressClassName: null, annotations: null } });
  expect(await resyncs()).toEqual(['apply Ingress']);
  expect(Object.keys(part('Ingress')?.spec as object)).toEqual(['rules']);
  expect(part('Ingress')?.metadata.annotations).not.toHaveProperty(['nginx.org/proxy-read-timeout']);
});

describe.each(KINDS)('%s', (kind, spec, work) => {
  test('is written once; the instance has its address from the first time that it works until the field is removed', async () => {
    await running();
    expect(await routeReady()).toBeUndefined();
    await edit(spec);
    expect(await resyncs()).toEqual([`apply ${kind}`]);
    expect(await routeReady()).toBe('False RouteNotReady');
    expect(await ready()).toBe('True Ready');
    expect(await urls()).toEqual({ url: INSIDE, internalURL: INSIDE });
    expect(await resyncs()).toEqual([]);
    await work();
    await harness.resync();
    expect(await routeReady()).toBe('True Ready');
    expect(await urls()).toEqual({ url: OUTSIDE, internalURL: INSIDE });
    expect((await harness.resync()).actions).toEqual({});
    await harness.editStatus(WORKLOAD_OBJECTS[kind], 'main-gateway', { parents: [], loadBalancer: { ingress: [] } });
    await harness.resync();
    expect(await routeReady()).toBe('False RouteNotReady');
    expect(await ready()).toBe('True Ready');
    expect(await urls()).toEqual({ url: OUTSIDE, internalURL: INSIDE });
    await edit({ [Object.keys(spec)[0] ?? '']: null });
    expect(await resyncs()).toEqual([`delete ${kind}`]);
    expect(await routeReady()).toBeUndefined();
    expect(await urls()).toEqual({ url: INSIDE, internalURL: INSIDE });
    expect((await harness.resync()).actions).toEqual({});
  });

  test('has another address if the spec names one', async () => {
    const [field = ''] = Object.keys(spec);
    await routed(spec);
    await edit({ [field]: { url: 'https://edge.example.com/ai' } });
    await work();
    await harness.resync();
    expect(await urls()).toMatchObject({ url: 'https://edge.example.com/ai' });
  });

  test('of another owner is never changed and never removed', async () => {
    await running();
    const { group, version } = WORKLOAD_OBJECTS[kind];
    await harness.cluster.create(WORKLOAD_OBJECTS[kind], {
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { name: 'main-gateway', namespace: 'default' },
      spec: { theirs: true },
    });
    await edit(spec);
    expect(await resyncs()).toEqual([]);
    expect(await routeReady()).toBe('False WorkloadConflict');
    expect((await condition())?.message).toContain(
      `${kind} "main-gateway" exists and does not belong to this instance`,
    );
    expect(await ready()).toBe('True Ready');
    expect(await urls()).toEqual({ url: INSIDE, internalURL: INSIDE });
    await edit({ httpRoute: null, ingress: null });
    expect(await resyncs()).toEqual([]);
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(part(kind)).toMatchObject({ spec: { theirs: true } });
  });

  test('that was edited or removed is written again', async () => {
    await routed(spec);
    await harness.edit(WORKLOAD_OBJECTS[kind], 'main-gateway', { spec: { rules: [] } });
    expect(await resyncs()).toEqual([`apply ${kind}`]);
    await harness.remove(WORKLOAD_OBJECTS[kind], 'main-gateway');
    expect(await resyncs()).toEqual([`apply ${kind}`]);
    expect((await harness.resync()).actions).toEqual({});
  });

  test('that the API server refuses changes nothing but RouteReady, and holds nothing up', async () => {
    await running();
    harness.cluster.inject(({ verb, resource }) =>
      verb === 'apply' && resource.kind === kind ? 'invalid' : undefined,
    );
    await edit({ ...spec, routing: { retries: 7 } });
    expect(await resyncs()).toEqual(['apply Deployment', `apply ${kind}`]);
    expect(await routeReady()).toBe('False RouteRefused');
    expect((await condition())?.message).toContain(`does not take ${kind} "main-gateway": injected`);
    expect(await ready()).toBe('True Ready');
    harness.cluster.inject(() => undefined);
    expect(await resyncs()).toEqual([`apply ${kind}`]);
    expect(await routeReady()).toBe('False RouteNotReady');
  });

  test('whose write fails, as if a webhook of another program is broken, has the cause in RouteReady', async () => {
    await running();
    let fails = true;
    harness.cluster.inject(({ verb, resource }) => {
      if (fails && verb === 'apply' && resource.kind === kind) throw new ClusterError('failed calling webhook', 500);
      return undefined;
    });
    await edit(spec);
    await harness.resync();
    expect(await routeReady()).toBe('False RouteRefused');
    expect((await condition())?.message).toContain(`does not take ${kind} "main-gateway": failed calling webhook`);
    expect(await ready()).toBe('True Ready');
    fails = false;
    expect(await resyncs()).toEqual([`apply ${kind}`]);
    expect(await routeReady()).toBe('False RouteNotReady');
  });

  test.each([
    ['may not read', new ClusterError('forbidden', 403), true],
    ['cannot read', new ClusterError('GET of the object: 500 Internal Server Error', 500), false],
    ['gets no answer about', new ClusterError('GET of the object: timeout'), false],
  ])('that the reconciler %s is not written, and everything else is', async (_, error, isAdvised) => {
    harness.cluster.inject(({ verb, resource }) => {
      if (verb === 'get' && resource.kind === kind) throw error;
      return undefined;
    });
    await routed(spec);
    expect(await routeReady()).toBe('False WorkloadUnreadable');
    expect((await condition())?.message).toContain(`${kind} "main-gateway" cannot be read: ${error.message}`);
    expect((await condition())?.message.includes('access.yaml')).toBe(isAdvised);
    expect(await ready()).toBe('True Ready');
    expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget']);
  });

  test('that cannot be read any more keeps the address, and nothing is removed', async () => {
    await routed(spec);
    await work();
    await harness.resync();
    harness.cluster.inject(({ verb, resource }) => {
      if (verb === 'get' && resource.kind === kind) throw new ClusterError('GET of the object: 500', 500);
      return undefined;
    });
    await edit({ routing: { retries: 7 } });
    expect(await resyncs()).toEqual(['apply Deployment']);
    expect(await routeReady()).toBe('False WorkloadUnreadable');
    expect(await ready()).toBe('True Ready');
    expect(await urls()).toEqual({ url: OUTSIDE, internalURL: INSIDE });
    expect(part(kind)).toBeDefined();
  });

  test('that is edited and cannot be written leads to the previous address', async () => {
    await routed(spec);
    await work();
    await harness.resync();
    let fails = true;
    harness.cluster.inject(({ verb, resource }) => {
      if (fails && verb === 'apply' && resource.kind === 'Deployment') throw new ClusterError('webhook', 500);
      return undefined;
    });
    const hosts = kind === 'HTTPRoute' ? { hostnames: ['new.example.com'] } : { host: 'new.example.com' };
    await edit({ [Object.keys(spec)[0] ?? '']: hosts, routing: { retries: 7 } });
    await harness.resync();
    expect(await routeReady()).toBe('False RouteNotReady');
    expect((await condition())?.message).toContain('does not have the host names of the spec yet');
    expect(await urls()).toEqual({ url: OUTSIDE, internalURL: INSIDE });
    fails = false;
    await harness.resync();
    await work();
    await harness.resync();
    expect(await urls()).toEqual({ url: 'https://new.example.com', internalURL: INSIDE });
  });

  test('is removed when a run that wrote it died, and its field was removed before the next run', async () => {
    await running();
    await edit(spec);
    let isWritten = false;
    harness.cluster.inject(({ verb, resource }) => {
      if (isWritten) throw new Error('killed');
      isWritten = verb === 'apply' && resource.kind === kind;
      return undefined;
    });
    await harness.resync().catch(() => undefined);
    harness.cluster.inject(() => undefined);
    harness.restart();
    await edit({ httpRoute: null, ingress: null });
    await harness.resync();
    expect(there()).toEqual(['Deployment', 'Service', 'PodDisruptionBudget']);
  });

  test('is not supported where Auto became Knative', async () => {
    harness.knative = true;
    await harness.apply(...makeSecrets('gateway'));
    await running({ type: 'Auto' }).catch(() => undefined);
    await edit(spec);
    await harness.resync();
    expect(await main()).toMatchObject({ workloadType: 'Knative' });
    expect(await routeReady()).toBe('False NotSupported');
    expect((await condition())?.message).toContain('DomainMapping');
    expect(part(kind)).toBeUndefined();
  });

  test('is not supported in the local stack', async () => {
    harness.servedAt = undefined;
    await running({ type: 'Auto' }).catch(() => undefined);
    await edit(spec);
    await harness.resync();
    expect(await main()).toMatchObject({ workloadType: 'Local' });
    expect(await routeReady()).toBe('False NotSupported');
    expect(await ready()).toBe('True Ready');
  });

  test('waits for the Service of its own gateway', async () => {
    await running();
    await harness.edit(WORKLOAD_OBJECTS.Service, 'main-gateway', { metadata: { ownerReferences: [] } });
    await edit(spec);
    await harness.resync();
    expect(part(kind)).toBeUndefined();
    expect(await routeReady()).toBe('False RouteNotReady');
  });
});

test('without Gateway API an HTTPRoute is reported as not installed, and everything else works', async () => {
  harness.unserved.add('httproutes');
  await routed({ httpRoute });
  expect(await routeReady()).toBe('False HTTPRouteNotInstalled');
  expect(await ready()).toBe('True Ready');
  await edit({ httpRoute: null, ingress });
  expect(await resyncs()).toEqual(['apply Ingress']);
  harness.unserved.clear();
  await edit({ httpRoute, ingress: null });
  await harness.resync();
  expect(there()).toContain('HTTPRoute');
});

test('an HTTPRoute works when one of its Gateways has accepted it as it is, and the others do not matter', async () => {
  await routed({ httpRoute });
  const taken = [
    { type: 'Accepted', status: 'True' },
    { type: 'ResolvedRefs', status: 'True' },
  ];
  const refused = [
    { type: 'Accepted', status: 'False', reason: 'NotAllowedByListeners', message: 'not from here' },
    { type: 'ResolvedRefs', status: 'True' },
  ];
  const [first, second] = httpRoute.parentRefs;
  const other = { name: 'public', namespace: 'infra', sectionName: 'http' };
  const statuses: ReadonlyArray<readonly [string, ReadonlyArray<readonly [object | undefined, object[]]>]> = [
    ['False RouteNotReady', [[other, taken]]],
    ['False NotAllowedByListeners', [[first, refused]]],
    ['False RouteNotReady', [[first, [{ type: 'Accepted', status: 'True' }]]]],
    ['False RouteNotReady', [[second, taken.map((one) => ({ ...one, observedGeneration: 0 }))]]],
    [
      'True Ready',
      [
        [first, refused],
        [{ ...second, namespace: 'default' }, taken],
      ],
    ],
  ];
  for (const [expected, parents] of statuses) {
    await acceptRoute(
      harness,
      parents.map(([parentRef, conditions]) => ({ parentRef, conditions })),
    );
    await harness.resync();
    expect(await routeReady()).toBe(expected);
  }
  expect((await condition())?.message).toContain('is accepted by Gateway default/private');
});

test('an HTTPRoute that is edited leads to the previous address until a Gateway has accepted the edit', async () => {
  await routed({ httpRoute });
  await acceptRoute(harness);
  await harness.resync();
  await edit({ httpRoute: { hostnames: ['new.example.com'] } });
  expect(await resyncs()).toEqual(['apply HTTPRoute']);
  expect(await routeReady()).toBe('False RouteNotReady');
  expect(await urls()).toEqual({ url: OUTSIDE, internalURL: INSIDE });
  await acceptRoute(harness);
  await harness.resync();
  expect(await routeReady()).toBe('True Ready');
  expect(await urls()).toEqual({ url: 'https://new.example.com', internalURL: INSIDE });
});

test('an HTTPRoute in place of an Ingress: the Ingress leads to the gateway until the HTTPRoute works', async () => {
  await routed({ ingress: { ...ingress, host: 'old.example.com' } });
  await addressIngress(harness);
  await harness.resync();
  expect(await urls()).toMatchObject({ url: 'https://old.example.com' });
  await edit({ ingress: null, httpRoute });
  expect(await resyncs()).toEqual(['apply HTTPRoute']);
  expect(await urls()).toEqual({ url: 'https://old.example.com', internalURL: INSIDE });
  expect(await resyncs()).toEqual([]);
  await acceptRoute(harness);
  expect(await resyncs()).toEqual(['delete Ingress']);
  expect(await urls()).toEqual({ url: OUTSIDE, internalURL: INSIDE });
  expect((await harness.resync()).actions).toEqual({});
});

test('the Secret of a VirtualKey has both addresses, and follows them', async () => {
  await routed({ ingress });
  const data = { BASE: `\${baseURL}/v1`, INSIDE: `\${internalURL}/v1` };
  await harness.apply(makeKey({ keyAlias: 'app', secretTemplate: { data } }, 'app'));
  const texts = async () => {
    await harness.resync();
    const stored = (await harness.get(RESOURCES.secrets, 'app-key'))?.data as Readonly<Record<string, string>>;
    return [atob(stored.BASE ?? ''), atob(stored.INSIDE ?? '')];
  };
  expect(await texts()).toEqual([`${INSIDE}/v1`, `${INSIDE}/v1`]);
  await addressIngress(harness);
  expect(await texts()).toEqual([`${OUTSIDE}/v1`, `${INSIDE}/v1`]);
  expect(await harness.ready(virtualKeys, 'app')).toBe('True Ready');
});

test('a paused instance keeps its route, its condition and its address', async () => {
  await routed({ ...TYPE, ingress });
  await addressIngress(harness);
  await harness.resync();
  await edit({ paused: true, ingress: null });
  expect(await resyncs()).toEqual([]);
  expect(await routeReady()).toBe('True Ready');
  expect(await urls()).toEqual({ url: OUTSIDE, internalURL: INSIDE });
  await edit({ paused: false });
  expect(await resyncs()).toEqual(['delete Ingress']);
  expect(await urls()).toEqual({ url: INSIDE, internalURL: INSIDE });
});
