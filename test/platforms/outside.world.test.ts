// The page's ways to reach a gateway from outside, taken by a real API server: the Ingress, and the HTTPRoute with the
// CRDs of Gateway API.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { gatewayName } from '#core/keys/object-names.ts';
import { parseDuration } from '#core/money/duration.ts';
import { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { MAX_BODY } from '../../functions/gateway/request/memory-budget.ts';
import { run } from '../support/child.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { describeUnless, testUnless } from '../support/skip-unless.ts';
import { documented } from './documented.ts';
import { documentsOf } from './world.ts';

const PAGE = 'docs/install/first-gateway.md';
const GATEWAY_API = 'sigs.k8s.io/gateway-api@v1.6.1';
/** The name of the page's instance. */
const INSTANCE = 'llm';

/** The folder of the Go module, which is downloaded once; undefined where there is no Go, or no way to it. */
function gatewayApi(): string | undefined {
  const { status, stdout } = spawnSync('go', ['mod', 'download', '-json', GATEWAY_API], { encoding: 'utf8' });
  return status === 0 ? (JSON.parse(stdout) as { readonly Dir: string }).Dir : undefined;
}

const block = (name: string) => documented(PAGE, name, 'yaml');
const specsOf = (name: string) => parseAllDocuments(block(name)).map((one) => one.toJS());
/** Milliseconds for which a plain request may be silent, unless an instance says otherwise. */
const total = parseDuration(GatewayInstanceSpec.shape.routing.parse({}).timeouts.total) ?? Number.NaN;
/** The Service that the reconciler makes; its golden file has another name. */
const [port] = documentsOf('test/reconcile/golden/deployment.golden.yaml').flatMap(({ kind, spec }) =>
  kind === 'Service' ? (spec as { ports: [{ name: string; port: number }] }).ports : [],
);

describeUnless(whyNoControlPlane(), 'from outside', () => {
  let server: TestControlPlane;
  beforeAll(async () => {
    server = await startControlPlane();
  });
  afterAll(() => server?.stop());

  const apply = async (text: string, ...args: string[]) => {
    const words = ['apply', '--validate=strict', ...args, '-f', '-'];
    const { code, stdout, stderr } = await run('kubectl', words, { KUBECONFIG: server.kubeconfig }, text);
    expect(`${code} ${stderr}`).toBe('0 ');
    return stdout;
  };

  test('the Ingress is taken, leads to the Service of the gateway, and waits longer and takes as much as the gateway', async () => {
    expect(await apply(block('Ingress'))).toBe('ingress.networking.k8s.io/llm created\n');
    const [{ metadata, spec }] = specsOf('Ingress');
    expect(spec.rules[0].http.paths[0].backend.service).toEqual({
      name: gatewayName(INSTANCE),
      port: { name: port?.name },
    });
    expect(spec.tls[0].hosts).toEqual([spec.rules[0].host]);
    const { annotations } = metadata;
    expect(annotations['nginx.org/proxy-buffering']).toBe('False');
    expect(parseDuration(annotations['nginx.org/proxy-read-timeout'])).toBeGreaterThan(total);
    expect(annotations['nginx.org/client-max-body-size']).toBe(`${MAX_BODY / 1024 / 1024}m`);
  });

  const module = gatewayApi();
  const why = module === undefined ? `go mod download ${GATEWAY_API} brings no CRDs here` : undefined;
  testUnless(why, 'so are the Gateway and the HTTPRoute, by the CRDs of Gateway API', async () => {
    const files = ['gateways', 'httproutes'].map((name) => `gateway.networking.k8s.io_${name}.yaml`);
    const crds = files.flatMap((name) => ['-f', join(module ?? '', 'config/crd/standard', name)]);
    const environment = { KUBECONFIG: server.kubeconfig };
    expect((await run('kubectl', ['apply', '--server-side', ...crds], environment)).stderr).toBe('');
    const established = ['wait', '--for=condition=Established', '--timeout=60s', ...crds];
    expect((await run('kubectl', established, environment)).code).toBe(0);
    expect(await apply(block('HTTPRoute'))).toMatch(/^gateway\S+ created\nhttproute\S+ created\n$/);
    const [gateway, route] = specsOf('HTTPRoute');
    expect(route.spec.parentRefs).toEqual([{ name: gateway.metadata.name }]);
    expect(route.spec.hostnames).toEqual([gateway.spec.listeners[0].hostname]);
    expect(gateway.spec.listeners.map(({ protocol }: { protocol: string }) => protocol)).toEqual(['HTTPS']);
    const [{ backendRefs, timeouts }] = route.spec.rules;
    expect(backendRefs).toEqual([{ name: gatewayName(INSTANCE), port: port?.port }]);
    expect(parseDuration(timeouts.request)).toBeGreaterThan(total);
  });
});
