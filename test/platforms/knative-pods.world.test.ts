// Knative as it is, on a real node: Serving with activator, autoscaler and queue-proxy, Eventing with its adapters,
// Envoy as ingress.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIssuer } from '#adapters/certificates/issuer.ts';
import { eventually } from '../support/eventually.ts';
import { whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { documented } from './documented.ts';
import { MESSAGES } from './node-load.ts';
import { keyOf, teamOf } from './node-manifests.ts';
import { replays } from './node-pods.ts';
import { type RealNode, startRealNode } from './real-node.ts';
import { type Rig, whyNoRig } from './rig.ts';

const KNATIVE = process.env.TEST_KNATIVE;
const why =
  KNATIVE === undefined
    ? 'Knative on a node takes minutes: set TEST_KNATIVE to the folder that the build-knative.sh of the test kit has filled'
    : (whyNoRig() ?? whyNoRedis());
/** Milliseconds: Pods that are no longer wanted end half a minute later. */
const LONG = 300_000;
const TO_ZERO = 180_000;
const HOST = 'admission.gateway-operator.example.com';
const NODE = '192.0.2.1';

describeUnless(why, 'Knative on real Pods', () => {
  let node: RealNode;
  let rig: Rig;
  let ingress: string;

  beforeAll(async () => {
    node = await startRealNode();
    rig = node.rig;
    await setUpRoute(node, await rig.script('knative.sh', { KNATIVE: KNATIVE ?? '' }));
    // Gateways are visible inside the cluster only.
    const ip = await rig.kubectl('-n knative-serving get service ingress-internal -o jsonpath={.spec.clusterIP}');
    ingress = await rig.reach(`${ip}:80`);
  }, LONG);
  afterAll(() => node?.stop(), 60_000);

  const seconds = (began: number) => ((performance.now() - began) / 1000).toFixed(1);
  const podsOf = (namespace: string, service: string) =>
    rig.kubectl(`-n ${namespace} get pods -l serving.knative.dev/service=${service} -o name`);
  const isAtZero = (namespace: string, service: string) =>
    eventually(
      () => podsOf(namespace, service),
      (names) => names === '',
      TO_ZERO,
    );
  const isReady = (what: string) => rig.kubectl(`-n team wait ${what} --for=condition=Ready --timeout=120s`);
  /** Calls the team's gateway by the ingress; `onPart` sees each part of the reply as it arrives. */
  const call = async (body: object, onPart: (text: string) => void = () => {}) => {
    const key = await node.keyIn('team', 'team-key');
    const url = await rig.kubectl('-n team get gatewayinstance team -o jsonpath={.status.url}');
    return post(`${ingress}/chat/completions`, new URL(url).hostname, key, { body, onPart });
  };
  const echo = () => call({ model: 'echo', messages: MESSAGES });
  const keyReady = (name: string) => isReady(`virtualkey/${name}`);
  const teamKey = (name: string) => {
    const connectionRef = { instanceRef: { name: 'team', namespace: 'team' } };
    return { ...keyOf(name, { models: ['echo'], connectionRef }), metadata: { name, namespace: 'team' } };
  };

  test(
    'by the page: the operator is ready, and the API server asks admission by its HTTPS route',
    async () => {
      const began = performance.now();
      await rig.type(documented('docs/install/knative.md', 'install'), node.desk);
      node.note(`${seconds(began)} s until admission and reconcile are ready`);
      await rig.type(documented('docs/install/knative.md', 'webhooks'), node.desk);
      const refused = await rig.run('kubectl', ['apply', '-f', '-'], JSON.stringify(keyOf('bad', { maxBudget: '-1' })));
      expect(refused.stderr).toContain('denied the request');
      expect(refused.stderr).toContain('maxBudget');
    },
    LONG,
  );

  test(
    'a gateway is ready, and what it streams is flushed event by event',
    async () => {
      const began = performance.now();
      await rig.kubectl('apply -f -', teamOf(node.database, { workload: { type: 'Knative' } }));
      await isReady('gatewayinstance/team virtualkey/team');
      node.note(`${seconds(began)} s from the apply until instance and key are ready`);
      const parts: Array<{ text: string; isOver: boolean }> = [];
      const isOver = () => (node.upstream.stats.read().models.slow?.reported ?? 0) > 0;
      const { status } = await call({ model: 'slow', messages: MESSAGES, stream: true }, (text) =>
        parts.push({ text, isOver: isOver() }),
      );
      expect(status).toBe(200);
      expect(parts.filter((part) => !part.isOver).length).toBeGreaterThan(5);
      expect(parts.at(-1)?.text).toContain('[DONE]');
    },
    LONG,
  );

  test(
    'an idle gateway goes to zero; the first request wakes it, is served and charged',
    async () => {
      const idle = performance.now();
      await isAtZero('team', 'team-serving');
      node.note(`${seconds(idle)} s until no Pod of an idle gateway is left`);
      for (let time = 0; time < 2; time += 1) {
        await isAtZero('team', 'team-serving');
        const before = await node.booked();
        const began = performance.now();
        expect((await echo()).status).toBe(200);
        node.note(`${seconds(began)} s from a request of a gateway at zero to its reply`);
        await eventually(node.booked, ({ count }) => count === before.count + 1);
      }
    },
    LONG,
  );

  test(
    "admission's trigger wakes reconcile from zero: a new key is usable without a resync",
    async () => {
      await rig.kubectl('-n gateway-operator delete pingsource every-minute');
      await isAtZero('gateway-operator', 'reconcile');
      const began = performance.now();
      await rig.kubectl('apply -f -', teamKey('triggered'));
      await keyReady('triggered');
      node.note(`${seconds(began)} s from the apply of a key until it is ready, reconcile at zero`);
    },
    LONG,
  );

  test(
    'ApiServerSource wakes reconcile from zero: a Service that somebody deletes is made again',
    async () => {
      await isAtZero('gateway-operator', 'reconcile');
      const began = performance.now();
      await rig.kubectl('-n team delete ksvc team-serving --wait=true');
      await eventually(
        () => rig.run('kubectl', ['-n', 'team', 'get', 'ksvc', 'team-serving']),
        ({ code }) => code === 0,
        TO_ZERO,
      );
      node.note(`${seconds(began)} s until a deleted Service is made again, reconcile at zero`);
      await isReady('gatewayinstance/team');
      await eventually(echo, ({ status }) => status === 200);
    },
    LONG,
  );

  test(
    'PingSource wakes reconcile from zero: a Secret that somebody deletes is made again',
    async () => {
      await isAtZero('gateway-operator', 'reconcile');
      await rig.kubectl('-n team delete secret triggered-key');
      await pause(1000);
      expect(await podsOf('gateway-operator', 'reconcile')).toBe('');
      const token = 'jsonpath={.data.reconcile-token}';
      const value = await rig.kubectl(`-n gateway-operator get secret gateway-operator -o ${token}`);
      const began = performance.now();
      await rig.kubectl('apply -f -', pingSourceWith(Buffer.from(value, 'base64').toString()));
      await eventually(
        () => rig.run('kubectl', ['-n', 'team', 'get', 'secret', 'triggered-key']),
        ({ code }) => code === 0,
        TO_ZERO,
      );
      node.note(`${seconds(began)} s from the apply of a PingSource until its resync has repaired, reconcile at zero`);
    },
    LONG,
  );

  test(
    'a rollout with live keys loses no call',
    async () => {
      expect((await echo()).status).toBe(200);
      const before = await rig.kubectl('-n team get ksvc team-serving -o jsonpath={.status.latestReadyRevisionName}');
      const faults: string[] = [];
      let calls = 0;
      let isOver = false;
      const load = (async () => {
        const going: Array<Promise<unknown>> = [];
        for (; !isOver; await pause(200)) {
          calls += 1;
          const reply = echo().then(({ status, text }) => status === 200 || faults.push(`${status} ${text}`));
          going.push(reply.catch((error) => faults.push(`${error}`)));
        }
        await Promise.all(going);
      })();
      const rolled = { spec: { workload: { podAnnotations: { rolled: 'yes' } } } };
      await rig.kubectl(`-n team patch gatewayinstance team --type=merge -p ${JSON.stringify(rolled)}`);
      await eventually(
        () => rig.kubectl('-n team get ksvc team-serving -o jsonpath={.status.traffic[0].revisionName}'),
        (name) => name !== before,
        TO_ZERO,
      );
      await pause(5000);
      isOver = true;
      await load;
      node.note(`${faults.length} of ${calls} calls failed during a rollout`);
      expect(faults).toEqual([]);
    },
    LONG,
  );

  test(
    'by the page, the operator goes and leaves nothing',
    async () => {
      const [job, removal] = ['uninstall Job', 'uninstall'].map((step) =>
        documented('docs/install/uninstall.md', step),
      );
      const began = performance.now();
      await rig.type(`${job}\n${removal} -f infra/platforms/knative/operator.yaml`, node.desk);
      node.note(`${seconds(began)} s to remove the operator with an instance and two keys`);
      expect(await replays(rig)).toEqual([]);
      expect(await rig.kubectl('get ksvc -A -o name')).toBe('');
    },
    LONG,
  );
});

/**
 * The HTTPS route of admission, which `auto-tls` or a load balancer gives elsewhere: Knative says https, the node
 * resolves the name, and TLS ends there with a certificate that the API server's system trusts.
 */
async function setUpRoute({ rig, folder }: RealNode, ingress: string): Promise<void> {
  const patch = (map: string, data: object) =>
    rig.kubectl(`-n knative-serving patch configmap ${map} --type=merge -p ${JSON.stringify({ data })}`);
  await patch('config-network', { 'default-external-scheme': 'https' });
  await patch('config-deployment', { 'registries-skipping-tag-resolving': 'example.com,registry.example.com' });
  const issuer = createIssuer();
  const [from, until] = [Date.now() - 60_000, Date.now() + 86_400_000];
  const authority = await issuer.issueAuthority({ name: 'route', from, until });
  const { cert, key } = await issuer.issue({ authority, names: [HOST], from, until });
  const files = join(folder, 'route');
  mkdirSync(files);
  const write = (name: string, text: string) => {
    writeFileSync(join(files, name), text);
    return join(files, name);
  };
  const mount = async (file: string, to: string) => {
    const { code, stderr } = await rig.run('mount', ['--bind', file, to]);
    if (code !== 0) throw new Error(stderr);
  };
  await mount(write('hosts', `127.0.0.1 localhost\n${NODE} ${HOST}\n`), '/etc/hosts');
  const roots = '/etc/ssl/certs/ca-certificates.crt';
  await mount(write('roots', `${readFileSync(roots, 'utf8')}\n${authority.cert}`), roots);
  const to = `${new URL(ingress).hostname}:80`;
  await rig.endTls(`${NODE}:443`, to, write('cert', cert), write('key', key));
}

/** The page's PingSource with the token. */
function pingSourceWith(token: string): object {
  return {
    apiVersion: 'sources.knative.dev/v1',
    kind: 'PingSource',
    metadata: { name: 'every-minute', namespace: 'gateway-operator' },
    spec: {
      schedule: '* * * * *',
      ceOverrides: { extensions: { reconciletoken: token } },
      sink: { ref: { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name: 'reconcile' } },
    },
  };
}

interface PostedEvent {
  readonly body: object;
  readonly onPart: (text: string) => void;
}

/** A POST under another host's name, which `fetch` cannot send. */
function post(url: string, host: string, key: string, { body, onPart }: PostedEvent) {
  const headers = { host, authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        onPart(part);
      });
      response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });
}
