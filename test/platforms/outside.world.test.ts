// The page's ways to reach a gateway from outside, on a real API server with the rights of the reconciler: the Ingress,
// and the HTTPRoute with the CRDs of Gateway API. The test is the controller that writes their statuses.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, type NodeTransport } from '#adapters/kubernetes/node.ts';
import { gatewayName } from '#core/keys/object-names.ts';
import { parseDuration } from '#core/money/duration.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { MAX_BODY } from '../../functions/gateway/request/memory-budget.ts';
import { type RouteName, WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';
import { applyKinds } from '../../infra/packaging/manifests/apply.ts';
import { makeAccounts } from '../../infra/platforms/local/cluster/accounts.ts';
import { acceptRoute, addressIngress } from '../reconcile/controllers.ts';
import { createHarness, type Harness } from '../reconcile/harness.ts';
import { makeInstance, makeSecrets } from '../reconcile/objects.ts';
import { run } from '../support/child.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { describeUnless, testUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { documented } from './documented.ts';
import { documentsOf } from './world.ts';

const SAMPLE = documentsOf('docs/samples/outside.yaml');
const PAGE = 'docs/install/first-gateway.md';
const GATEWAY_API = 'sigs.k8s.io/gateway-api@v1.6.1';
/** The last version whose standard channel has no timeouts of HTTPRoutes. */
const WITHOUT_TIMEOUTS = 'sigs.k8s.io/gateway-api@v1.1.0';
/** The name of the page's instance. */
const INSTANCE = 'llm';
const INSIDE = `http://${gatewayName(INSTANCE)}.default.svc`;
const OUTSIDE = 'https://llm.example.com';

/** The folder of the Go module, which is downloaded once; undefined where there is no Go, or no way to it. */
function gatewayApi(version: string): string | undefined {
  const { status, stdout } = spawnSync('go', ['mod', 'download', '-json', version], { encoding: 'utf8' });
  return status === 0 ? (JSON.parse(stdout) as { readonly Dir: string }).Dir : undefined;
}

interface RouteFields {
  readonly ingress?: { readonly annotations: Readonly<Record<string, string>> };
  readonly httpRoute?: { readonly parentRefs: ReadonlyArray<{ readonly name: string; readonly namespace: string }> };
}

/** The field that the page shows. */
function fieldOf(field: 'ingress' | 'httpRoute'): RouteFields {
  const found = SAMPLE.map(({ spec }) => spec as RouteFields).find((spec) => spec[field] !== undefined);
  return { [field]: found?.[field] };
}

/** Milliseconds for which a plain request may be silent, unless an instance says otherwise. */
const total = parseDuration(GatewayInstanceSpec.shape.routing.parse({}).timeouts.total) ?? Number.NaN;

describeUnless(whyNoControlPlane(), 'from outside', () => {
  let server: TestControlPlane;
  let harness: Harness;
  const transports: NodeTransport[] = [];
  const kubectl = (...words: string[]) => run('kubectl', words, { KUBECONFIG: server.kubeconfig });
  const open = async (file: string) => {
    const transport = await createKubeconfigTransport(file);
    transports.push(transport);
    return createCluster(transport);
  };
  beforeAll(async () => {
    server = await startControlPlane();
    const ours = await open(server.kubeconfig);
    await applyKinds(ours);
    const reconciles = await open((await makeAccounts(server.kubeconfig, temporaryFolder())).reconcile);
    harness = createHarness({ clusters: { ours, reconciles }, start: Date.now() });
    harness.servedAt = 'nobody';
    await harness.apply(...makeSecrets(), makeInstance({ workload: { type: 'Deployment' } }, INSTANCE));
    await resync();
  });
  afterAll(async () => {
    for (const { close } of transports) await close();
    await server?.stop();
  });

  const resync = async () => {
    const { actions, failed } = await harness.resync();
    expect(failed).toEqual({});
    return { applied: actions.ApplyWorkload ?? 0, deleted: actions.DeleteWorkload ?? 0 };
  };
  const edit = (spec: object) => harness.edit(gatewayInstances, INSTANCE, { spec });
  const live = (part: RouteName) => harness.get(WORKLOAD_OBJECTS[part], gatewayName(INSTANCE));
  const state = async () => {
    const { url, internalURL, conditions } = await harness.status(gatewayInstances, INSTANCE);
    const found = conditions?.find(({ type }) => type === 'RouteReady');
    return { url, internalURL, route: found && `${found.status} ${found.reason}` };
  };
  /** What the page says of both fields. `work`: their controller. */
  const expectWalk = async (part: RouteName, field: object, work: () => Promise<void>) => {
    await edit(field);
    expect(await resync()).toEqual({ applied: 1, deleted: 0 });
    expect(await resync()).toEqual({ applied: 0, deleted: 0 });
    expect(await state()).toEqual({ url: INSIDE, internalURL: INSIDE, route: 'False RouteNotReady' });
    await work();
    expect(await resync()).toEqual({ applied: 0, deleted: 0 });
    expect(await state()).toEqual({ url: OUTSIDE, internalURL: INSIDE, route: 'True Ready' });
    const [wait = '', url = ''] = documented(PAGE, 'outside').trim().split('\n');
    expect((await kubectl(...wait.split(' ').slice(1))).stdout).toContain(`${INSTANCE} condition met`);
    expect((await kubectl(...url.replaceAll("'", '').split(' ').slice(1))).stdout).toBe(OUTSIDE);
    await harness.editStatus(
      WORKLOAD_OBJECTS[part],
      gatewayName(INSTANCE),
      part === 'Ingress' ? NO_ADDRESS : { parents: [] },
    );
    await resync();
    expect(await state()).toEqual({ url: OUTSIDE, internalURL: INSIDE, route: 'False RouteNotReady' });
  };
  const NO_ADDRESS = { loadBalancer: { ingress: null } };

  test('the Ingress of the page is accepted, leads to the Service of the gateway, and waits longer and takes as much as the gateway', async () => {
    const field = fieldOf('ingress');
    await expectWalk('Ingress', field, () => addressIngress(harness, gatewayName(INSTANCE)));
    const { metadata, spec } = (await live('Ingress')) as KubeObject & { spec: IngressSpec };
    const service = await harness.get(WORKLOAD_OBJECTS.Service, gatewayName(INSTANCE));
    const { ports } = (service?.spec ?? { ports: [] }) as { readonly ports: ReadonlyArray<{ readonly port: number }> };
    const [rule] = spec.rules;
    expect(rule.http.paths).toEqual([
      {
        path: '/',
        pathType: 'Prefix',
        backend: { service: { name: service?.metadata.name, port: { number: ports[0]?.port } } },
      },
    ]);
    expect(spec.tls[0].hosts).toEqual([rule.host]);
    const { annotations = {} } = metadata;
    expect(annotations).toMatchObject(field.ingress?.annotations ?? {});
    expect(annotations['nginx.org/proxy-buffering']).toBe('False');
    expect(parseDuration(annotations['nginx.org/proxy-read-timeout'] ?? '')).toBe(total + 30_000);
    expect(annotations['nginx.org/client-max-body-size']).toBe(`${MAX_BODY / 1024 / 1024}m`);
    await edit({ ingress: null });
    expect(await resync()).toEqual({ applied: 0, deleted: 1 });
    expect(await state()).toEqual({ url: INSIDE, internalURL: INSIDE, route: undefined });
  });

  test('an Ingress that the API server refuses, here for a policy, is reported with its words', async () => {
    const environment = { KUBECONFIG: server.kubeconfig };
    expect((await run('kubectl', ['apply', '-f', '-'], environment, JSON.stringify(NO_INGRESSES))).stderr).toBe('');
    const probe = ['create', 'ingress', 'probe', '--rule=a.example.com/=b:80', '--dry-run=server'];
    await eventually(
      () => kubectl(...probe),
      ({ code }) => code !== 0,
    );
    await edit(fieldOf('ingress'));
    expect((await harness.resync()).failed).toEqual({ ApplyWorkload: 1 });
    expect((await state()).route).toBe('False RouteRefused');
    const { conditions } = await harness.status(gatewayInstances, INSTANCE);
    expect(conditions?.find(({ type }) => type === 'RouteReady')?.message).toContain('platform team: use a Gateway');
    await kubectl('delete', 'validatingadmissionpolicybinding', 'no-ingresses');
    await eventually(
      () => kubectl(...probe),
      ({ code }) => code === 0,
    );
    expect(await resync()).toEqual({ applied: 1, deleted: 0 });
    expect((await state()).route).toBe('False RouteNotReady');
    await edit({ ingress: null });
    expect(await resync()).toEqual({ applied: 0, deleted: 1 });
  });

  test('without Gateway API an HTTPRoute is not installed', async () => {
    await edit(fieldOf('httpRoute'));
    expect(await resync()).toEqual({ applied: 0, deleted: 0 });
    expect(await state()).toEqual({ url: INSIDE, internalURL: INSIDE, route: 'False HTTPRouteNotInstalled' });
    await edit({ httpRoute: null });
  });

  const whyNot = (version: string) =>
    gatewayApi(version) === undefined ? `go mod download ${version} brings no CRDs here` : undefined;
  const installGatewayApi = async (version: string) => {
    const files = ['gateways', 'httproutes'].map((name) => `gateway.networking.k8s.io_${name}.yaml`);
    const crds = files.flatMap((name) => ['-f', join(gatewayApi(version) ?? '', 'config/crd/standard', name)]);
    expect((await kubectl('apply', '--server-side', ...crds)).stderr).toBe('');
    expect((await kubectl('wait', '--for=condition=Established', '--timeout=60s', ...crds)).code).toBe(0);
    await eventually(
      () => kubectl('get', 'httproutes'),
      ({ code }) => code === 0,
    );
  };

  testUnless(
    whyNot(WITHOUT_TIMEOUTS),
    'CRDs without timeouts refuse an HTTPRoute with one, and take it without',
    async () => {
      await installGatewayApi(WITHOUT_TIMEOUTS);
      await edit(fieldOf('httpRoute'));
      expect((await harness.resync()).failed).toEqual({ ApplyWorkload: 1 });
      expect((await state()).route).toBe('False RouteRefused');
      const { conditions } = await harness.status(gatewayInstances, INSTANCE);
      expect(conditions?.find(({ type }) => type === 'RouteReady')?.message).toContain('.timeouts: field not declared');
      await edit({ httpRoute: { timeouts: 'None' } });
      expect(await resync()).toEqual({ applied: 1, deleted: 0 });
      expect(await resync()).toEqual({ applied: 0, deleted: 0 });
      expect((await state()).route).toBe('False RouteNotReady');
      await edit({ httpRoute: null });
      expect(await resync()).toEqual({ applied: 0, deleted: 1 });
    },
  );

  const title = 'the Gateway and the HTTPRoute of the page are accepted by the CRDs of Gateway API';
  testUnless(whyNot(GATEWAY_API), title, async () => {
    await installGatewayApi(GATEWAY_API);
    const gateway = SAMPLE.find(({ kind }) => kind === 'Gateway');
    await kubectl('create', 'namespace', gateway?.metadata.namespace ?? '');
    const words = ['apply', '--validate=strict', '-f', '-'];
    const applied = await run('kubectl', words, { KUBECONFIG: server.kubeconfig }, JSON.stringify(gateway));
    expect(`${applied.code} ${applied.stderr}`).toBe('0 ');

    const field = fieldOf('httpRoute');
    const [parentRef] = field.httpRoute?.parentRefs ?? [];
    expect(parentRef).toMatchObject({ name: gateway?.metadata.name, namespace: gateway?.metadata.namespace });
    const accept = (parents?: Parameters<typeof acceptRoute>[1]) =>
      acceptRoute(harness, parents, gatewayName(INSTANCE));
    await expectWalk('HTTPRoute', field, accept);
    const { spec } = (await live('HTTPRoute')) as KubeObject & { spec: { readonly rules: readonly [HTTPRule] } };
    const [rule] = spec.rules;
    expect(rule.matches).toEqual([{ path: { type: 'PathPrefix', value: '/' } }]);
    expect(rule.backendRefs).toMatchObject([{ name: gatewayName(INSTANCE), port: 80 }]);
    expect(parseDuration(rule.timeouts.request)).toBe(total + 30_000);

    const bad = { status: 'False', message: 'no', lastTransitionTime: '2026-11-21T12:00:00Z' };
    for (const [type, reason] of [
      ['Accepted', 'NotAllowedByListeners'],
      ['ResolvedRefs', 'BackendNotFound'],
    ] as const) {
      await accept([{ parentRef, conditions: [{ ...bad, type, reason }] }]);
      await resync();
      expect(await state()).toEqual({ url: OUTSIDE, internalURL: INSIDE, route: `False ${reason}` });
    }
    await accept();
    await resync();
    expect((await state()).route).toBe('True Ready');
    // The status is that of an earlier generation now.
    await edit({ routing: { timeouts: { total: '900s' } } });
    expect((await resync()).applied).toBe(2);
    expect((await state()).route).toBe('False RouteNotReady');
    await accept();
    await resync();
    expect((await state()).route).toBe('True Ready');
    await edit({ httpRoute: null });
    expect(await resync()).toEqual({ applied: 0, deleted: 1 });
    expect(await state()).toEqual({ url: INSIDE, internalURL: INSIDE, route: undefined });
  });
});

const policy = (kind: string, spec: object) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind,
  metadata: { name: 'no-ingresses' },
  spec,
});
const NO_INGRESSES = {
  apiVersion: 'v1',
  kind: 'List',
  items: [
    policy('ValidatingAdmissionPolicy', {
      matchConstraints: {
        resourceRules: [
          { apiGroups: ['networking.k8s.io'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['ingresses'] },
        ],
      },
      validations: [{ expression: 'false', message: 'platform team: use a Gateway' }],
    }),
    policy('ValidatingAdmissionPolicyBinding', { policyName: 'no-ingresses', validationActions: ['Deny'] }),
  ],
};

interface IngressSpec {
  readonly rules: readonly [{ readonly host: string; readonly http: { readonly paths: readonly object[] } }];
  readonly tls: readonly [{ readonly hosts: readonly string[] }];
}

interface HTTPRule {
  readonly matches: readonly object[];
  readonly backendRefs: readonly object[];
  readonly timeouts: { readonly request: string };
}
