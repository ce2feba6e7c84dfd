// Are the tokens of a real API server verified as they should be, in Node and in real workerd?
import { createPrivateKey } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createServiceAccountTransport } from '#adapters/kubernetes/node.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { createAdmission } from '../../functions/admission/app.ts';
import { callerOf } from '../../infra/node/caller.ts';
import { nodeDependencies } from '../../infra/node/platform.ts';
import { DEPLOYABLES, writeBundles } from '../../infra/tools/build.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../control-plane.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { eventually } from '../eventually.ts';
import { type RunningWorkers, startWorkers } from '../platforms/miniflare.ts';
import { runNode, startNode } from '../platforms/node-process.ts';
import { reviewOf } from '../platforms/review.ts';
import { describeUnless } from '../skip-unless.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { createWorld, objectOf } from './fixtures.ts';

const AUDIENCE = 'https://admission.gateway-operator.svc:443';
const SEGMENT = 'an-unguessable-segment';
const why = whyNoControlPlane();

describeUnless(why, 'tokens of a real API server', () => {
  let server: TestControlPlane;
  /** A folder with `token` and `ca.crt`, as every Pod has one. */
  let pod: string;

  beforeAll(async () => {
    server = await startControlPlane();
    const named = (kind: string, name: string, namespace?: string) => ({
      apiVersion: 'v1',
      kind,
      metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    });
    await server.call('POST', '/api/v1/namespaces', named('Namespace', 'gateway-operator'));
    for (const name of ['admission', 'somebody']) {
      const path = '/api/v1/namespaces/gateway-operator/serviceaccounts';
      expect((await server.call('POST', path, named('ServiceAccount', name, 'gateway-operator'))).code).toBe(201);
    }
    pod = join(temporaryFolder(), 'pod');
    mkdirSync(pod);
    writeFileSync(join(pod, 'token'), await tokenFor('admission', []));
    writeFileSync(join(pod, 'ca.crt'), server.ca);
  });
  afterAll(() => server?.stop());

  /** The API server issues it: `kubectl create token NAME --audience …`. No audience: for the API server itself. */
  async function tokenFor(name: string, audiences: string[]): Promise<string> {
    const path = `/api/v1/namespaces/gateway-operator/serviceaccounts/${name}/token`;
    const { body } = await server.call('POST', path, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences, expirationSeconds: 600 },
    });
    return (body as { status: { token: string } }).status.token;
  }

  /** As API servers from 1.37 on make it for a webhook, with the key of this one: the same issuer, key and claims. */
  async function attestedToken(address: string, group: string): Promise<string> {
    const own = await tokenFor('somebody', [address]);
    const key = createPrivateKey(readFileSync(join(dirname(server.kubeconfig), 'sa.key')));
    const claims = decodeJwt(own);
    const kubernetes = {
      attestations: { admissionReviewAPIGroups: [group] },
      validatingWebhookConfiguration: { name: 'gateway-operator', uid: 'c0ffee' },
    };
    return new SignJWT({ ...claims, 'kubernetes.io': kubernetes })
      .setProtectedHeader(decodeProtectedHeader(own) as { alg: string })
      .sign(key);
  }

  const review = JSON.stringify(reviewOf(objectOf('VirtualKey')));
  const headersWith = (token: string | undefined): Record<string, string> =>
    token === undefined ? {} : { authorization: `Bearer ${token}` };

  describe('in Node, as the service account of a Pod', () => {
    async function functionWith(mode: 'report' | 'enforce') {
      const node = nodeDependencies();
      const log = createMemoryLog();
      const metrics = createMetrics();
      const { request, close } = createServiceAccountTransport({ address: server.url, folder: pod });
      const settings = { CALLER_TOKENS: mode, CALLER_AUDIENCE: AUDIENCE, CALLER_ISSUER: undefined };
      const caller = callerOf(settings, { request, clock: node.clock, log, metrics });
      const app = createAdmission({ ...node, cluster: (await createWorld()).cluster, log, metrics, ...caller });
      const send = (token?: string) =>
        app.request('/validate', { method: 'POST', body: review, headers: headersWith(token) });
      return { send, log, metrics, close };
    }

    test('enforce refuses a genuine token of a service account, which is not attested, and says why in the log', async () => {
      const { send, log, metrics, close } = await functionWith('enforce');
      const answer = await send(await tokenFor('somebody', [`${AUDIENCE}/validate`]));
      expect(answer.status).toBe(401);
      expect(JSON.stringify(log.lines)).toContain('"problem":"NotAttested"');
      expect(JSON.stringify(log.lines)).toContain('system:serviceaccount:gateway-operator:somebody');
      expect(metrics.render()).toContain('gateway_operator_admission_callers_total{result="NotAttested"} 1');
      await close();
    });

    test('enforce refuses a genuine token for the API server itself, another path, and none', async () => {
      const { send, log, close } = await functionWith('enforce');
      expect((await send(await tokenFor('somebody', []))).status).toBe(401);
      expect((await send(await tokenFor('somebody', [`${AUDIENCE}/mutate`]))).status).toBe(401);
      expect((await send()).status).toBe(401);
      const said = JSON.stringify(log.lines);
      expect(said.match(/"problem":"WrongAudience"/g)).toHaveLength(2);
      expect(said).toContain('"problem":"NoToken"');
      await close();
    });

    test('report judges all the same, and says why it would not', async () => {
      const { send, log, close } = await functionWith('report');
      const answer = await send(await tokenFor('somebody', [`${AUDIENCE}/validate`]));
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ kind: 'AdmissionReview' });
      expect(JSON.stringify(log.lines)).toContain('"problem":"NotAttested"');
      await close();
    });

    test('enforce lets an attested token of the cluster pass, for the group that it is attested for', async () => {
      const { send, log, metrics, close } = await functionWith('enforce');
      const first = await send(await attestedToken(`${AUDIENCE}/validate`, 'auth.gateway-operator.dev'));
      expect(first.status, JSON.stringify(log.lines)).toBe(200);
      expect((await send(await attestedToken(`${AUDIENCE}/validate`, '*'))).status).toBe(200);
      expect((await send(await attestedToken(`${AUDIENCE}/validate`, 'apps'))).status).toBe(401);
      const counted = metrics.render();
      expect(counted).toContain('gateway_operator_admission_callers_total{result="verified"} 2');
      expect(counted).toContain('gateway_operator_admission_callers_total{result="OtherGroup"} 1');
      await close();
    });
  });

  describe('in a Node process, as it is deployed', () => {
    let folder: string;
    const bundle = () => join(folder, 'node/admission.mjs');
    const environment = { CALLER_TOKENS: 'enforce', CALLER_AUDIENCE: `${AUDIENCE}/`, LOG_LEVEL: 'warn' };

    beforeAll(async () => {
      folder = temporaryFolder();
      await writeBundles(
        folder,
        DEPLOYABLES.filter(({ output }) => output === 'node/admission.mjs'),
      );
    });

    test('its environment is enough', async () => {
      const started = await startNode(bundle(), { ...environment, LOG_LEVEL: 'info', KUBECONFIG: server.kubeconfig });
      const send = async (token: string) => {
        const init = { method: 'POST', body: review, headers: headersWith(token) };
        return (await fetch(`${started.url}/mutate`, init)).status;
      };
      expect(await send(await tokenFor('somebody', [`${AUDIENCE}/mutate`])), started.printed()).toBe(401);
      expect(await send(await attestedToken(`${AUDIENCE}/mutate`, 'auth.gateway-operator.dev'))).toBe(200);
      const counted = await (await fetch(`${started.url}/metrics`)).text();
      expect(counted).toContain('gateway_operator_admission_callers_total{result="NotAttested"} 1');
      expect(counted).toContain('gateway_operator_admission_callers_total{result="verified"} 1');
      expect(await started.stop()).toBe(0);
    });

    test('without an audience, or with a word that is none of the three, it does not start and says why', async () => {
      const run = (more: Record<string, string>) =>
        runNode(bundle(), [], { ...environment, KUBECONFIG: server.kubeconfig, ...more });
      const [without, unknown] = [await run({ CALLER_AUDIENCE: '' }), await run({ CALLER_TOKENS: 'on' })];
      expect([without.code, unknown.code]).toEqual([1, 1]);
      expect(`${without.stdout}${without.stderr}`).toContain('CALLER_AUDIENCE is not set: CALLER_TOKENS needs it');
      expect(`${unknown.stdout}${unknown.stderr}`).toContain('CALLER_TOKENS=');
    });
  });

  describe('in workerd', () => {
    let workers: RunningWorkers;

    beforeAll(async () => {
      const folder = temporaryFolder();
      await writeBundles(
        folder,
        DEPLOYABLES.filter(({ output }) => output === 'cloudflare/admission.mjs'),
      );
      const bindings = {
        API_SERVER: server.url,
        API_TOKEN: server.token,
        PATH_SECRETS: SEGMENT,
        CALLER_TOKENS: 'enforce',
        CALLER_AUDIENCE: AUDIENCE,
      };
      const scriptPath = join(folder, 'cloudflare/admission.mjs');
      workers = await startWorkers([{ name: 'admission', scriptPath, bindings, services: {} }], join(pod, 'ca.crt'));
    });
    afterAll(() => workers?.stop());

    const send = (token?: string) =>
      fetch(`${workers.url}/${SEGMENT}/mutate`, { method: 'POST', body: review, headers: headersWith(token) });
    const address = `${AUDIENCE}/${SEGMENT}/mutate`;

    test('a genuine token that is not attested is refused, an attested one passes, request after request', async () => {
      expect((await send(await tokenFor('somebody', [address]))).status, workers.printed()).toBe(401);
      // What a Worker prints comes by another way than its answer.
      await eventually(
        async () => workers.printed(),
        (printed) => printed.includes('"problem":"NotAttested"'),
      );
      expect((await send()).status).toBe(401);
      const good = await attestedToken(address, 'auth.gateway-operator.dev');
      const answers = await Promise.all(Array.from({ length: 8 }, () => send(good)));
      expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
      expect((await send(await attestedToken(`${AUDIENCE}/other/mutate`, '*'))).status).toBe(401);
    });
  });
});
