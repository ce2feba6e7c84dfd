// Real Pods: the pages' own commands on a real node, from the first apply to the last trace of the operator.
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { RELEASE_IMAGE } from '../../infra/runtime/config/release.ts';
import { eventually } from '../support/eventually.ts';
import { whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { documented } from './documented.ts';
import { MESSAGES, startLoad } from './node-load.ts';
import { costOf, keyOf, mine, teamOf } from './node-manifests.ts';
import { evictAll, podsOf, replays } from './node-pods.ts';
import { buildBefore, type RealNode, startRealNode } from './real-node.ts';
import { type Rig, whyNoRig } from './rig.ts';

const KEYS = Array.from({ length: 10 }, (_, index) => `k${index}`);
/** Milliseconds that hostile clients stay. */
const FLOOD = 20_000;
const MAX_TOKENS = 64;
/** Nano-dollars: less than any prompt of the tests costs. */
const PROMPT = 3_000;
/** Nano-dollars: more than a request of so many tokens may hold. */
const MAX_RESERVATION = 500_000;
/** Milliseconds: rollouts and drains wait for grace periods. */
const LONG = 300_000;

const why = process.env.TEST_PODS ? (whyNoRig() ?? whyNoRedis()) : 'real Pods take minutes: set TEST_PODS=1';

const OURS = (namespace: string, name: string) =>
  `/apis/instance.gateway-operator.dev/v1alpha1/namespaces/${namespace}/gatewayinstances/${name}`;

describeUnless(why, 'real Pods', () => {
  let node: RealNode;
  let rig: Rig;

  beforeAll(async () => {
    node = await startRealNode();
    rig = node.rig;
  });
  afterAll(() => node?.stop());

  const seconds = (began: number) => ((performance.now() - began) / 1000).toFixed(1);
  const open = async (namespace: string, service: string, secret: string) => {
    const address = (await rig.kubectl(`-n ${namespace} get service ${service} -o jsonpath={.spec.clusterIP}`)).trim();
    return { apiKey: await node.keyIn(namespace, secret), baseURL: await rig.reach(`${address}:80`) };
  };
  /** Charged calls of the team's gateway, and writes of the ten keys. */
  const startTeamLoad = async () => {
    const load = startLoad({ rig, keys: KEYS, ...(await open('team', 'team-gateway', 'team-key')) });
    onTestFinished(async () => void (await load.stop()));
    return load;
  };
  const client = (options: { apiKey: string; baseURL: string }) => new OpenAI({ ...options, maxRetries: 0 });
  const workloadOf = async (instance: string) => {
    const { body } = await rig.call('GET', OURS('team', instance));
    return (body as Instance).status?.conditions?.find(({ type }) => type === 'WorkloadReady');
  };

  /** The operator and a first gateway. */
  const install = async (onReady = () => {}) => {
    for (const step of ['kinds', 'functions', 'ready'])
      await rig.type(documented('docs/install/kubernetes.md', step), node.desk);
    onReady();
    await rig.type(mine(documented('docs/install/first-gateway.md', 'first gateway'), node.database), node.desk);
    await rig.type(documented('docs/install/first-gateway.md', 'first gateway is ready'), node.desk);
  };

  const uninstall = async () => {
    for (const step of ['uninstall Job', 'uninstall'])
      await rig.type(documented('docs/install/uninstall.md', step), node.desk);
  };

  test('by the pages: installed, a first gateway, a charged completion, plain and streamed', async () => {
    const began = performance.now();
    await install(() => node.note(`${seconds(began)} s from the first apply until admission is ready`));
    const first = client(await open('default', 'llm-gateway', 'first-key'));
    const reply = await first.chat.completions.create({ model: 'gpt-5-mini', messages: MESSAGES });
    node.note(`${seconds(began)} s from the first apply to the first charged completion`);
    expect(reply.choices[0]?.message.content).toMatch(/\S/);
    const stream = await first.chat.completions.create({ model: 'gpt-5-mini', messages: MESSAGES, stream: true });
    let finish: string | null | undefined;
    for await (const { choices } of stream) finish = choices[0]?.finish_reason ?? finish;
    expect(finish).toBe('stop');
    expect((await eventually(node.booked, ({ count }) => count === 2)).cost).toBeGreaterThan(0);
  });

  test('a host without a dot is the Service of that name beside the instance, for reconcile too', async () => {
    // Reconcile's own namespace has a Service of that name too, behind which nothing listens.
    await rig.kubectl('-n gateway-operator create service clusterip postgres --tcp=5432');
    await rig.kubectl('apply -f -', teamOf(node.database));
    await rig.kubectl('-n team wait gatewayinstance/team virtualkey/team --for=condition=Ready --timeout=120s');
    const team = client(await open('team', 'team-gateway', 'team-key'));
    expect((await team.chat.completions.create({ model: 'echo', messages: MESSAGES })).choices).toHaveLength(1);
  });

  test(
    'a host with a dot is each name by which Pods find a Service, for the reconciler and the gateway',
    async () => {
      const workload = { type: 'Deployment', scale: { min: 1, max: 1 } };
      const domains = ['.team', '.team.svc', '.team.svc.cluster.local', '.team.svc.cluster.local.'];
      const use = domains.map(async (domain, index) => {
        const name = `domain${index}`;
        const team = teamOf(node.database, { name, domain, workload });
        await rig.kubectl('apply -f -', team);
        await rig.kubectl(
          `-n team wait gatewayinstance/${name} virtualkey/${name} --for=condition=Ready --timeout=120s`,
        );
        const { chat } = client(await open('team', `${name}-gateway`, `${name}-key`));
        expect((await chat.completions.create({ model: 'echo', messages: MESSAGES })).choices).toHaveLength(1);
        await rig.kubectl('delete -f -', team);
        await rig.kubectl(`-n team wait pods -l app.kubernetes.io/instance=${name} --for=delete --timeout=120s`);
      });
      await Promise.all(use);
    },
    LONG,
  );

  test(
    'the commands for whoever looks for a failure work',
    async () => {
      // The page's instance is in a namespace of its own.
      const type = async (page: string, name: string, more = '') =>
        rig.type(documented(`docs/operate/${page}.md`, name).replaceAll('-n llm', '-n default') + more, node.desk);
      const answered = await rig.type(documented('docs/install/first-gateway.md', 'call'), node.desk);
      expect(answered).toContain('"object":"chat.completion"');
      expect(await type('troubleshooting', 'resync')).toMatch(/"actions":/);
      expect(await type('troubleshooting', 'reconciler')).toContain('cronjob.batch/reconcile');
      expect(await type('troubleshooting', 'webhook')).toMatch(/^admission-.* Running/m);
      // No container has ended before, so that there is no log of it.
      const restarts = documented('docs/operate/troubleshooting.md', 'restarts').split('\n');
      expect(restarts).toHaveLength(2);
      expect(await rig.type((restarts[0] ?? '').replaceAll('-n llm', '-n default'), node.desk)).toMatch(
        /^llm-gateway-\S+ \n/,
      );
      await rig.type((restarts[1] ?? '').replaceAll('-n llm', '-n default').replace(' --previous', ''), node.desk);
      const report = await type('troubleshooting', 'report');
      expect(report).toContain('reconcile registry.example.com/gateway-operator');
      expect(report).toContain('"message":"listening"');
      // No namespace is oversized, so grep finds nothing.
      expect(await type('reconciler', 'oversized', ' || true')).toMatch(/^reconcile-\S+ .* Running/m);
    },
    LONG,
  );

  test('the page tells the addresses of the API servers, for NetworkPolicies', async () => {
    expect(await rig.type(documented('docs/install/kubernetes.md', 'API servers'), node.desk)).toBe('192.0.2.1/32\n');
  });

  test('bad manifests are refused by name and reason', async () => {
    const bad = [
      [keyOf('bad', { models: ['gpt-5-mino'] }), /gpt-5-mino/],
      [keyOf('bad', { maxBudget: '-1' }), /maxBudget/],
      [keyOf('bad', { budgetDuration: 'monthly' }), /budgetDuration/],
      [keyOf('bad', { connectionRef: { instanceRef: { name: 'other', namespace: 'default' } } }), /other/],
      [keyOf('bad', { keyAlias: 'first' }), /first/],
    ] as const;
    for (const [manifest, reason] of bad) {
      const answer = await rig.run('kubectl', ['apply', '-f', '-'], JSON.stringify(manifest));
      expect(answer.stderr).toMatch(reason);
      expect(answer.code).toBe(1);
    }
  });

  test('an image that cannot be pulled is told within seconds, with the command that says why', async () => {
    const instance = teamOf(node.database).items.find(({ kind }) => kind === 'GatewayInstance');
    const spec = { ...(instance?.spec as object), workload: { type: 'Deployment', image: 'registry.invalid/none:1' } };
    const began = performance.now();
    await rig.kubectl('apply -f -', {
      ...instance,
      metadata: { ...(instance?.metadata as object), name: 'unpulled' },
      spec,
    });
    const message = await eventually(
      () => workloadOf('unpulled'),
      (one) => one?.message?.includes('kubectl') === true,
    );
    node.note(`${seconds(began)} s until WorkloadReady names the command for an image that cannot be pulled`);
    expect(message).toMatchObject({ status: 'False' });
    const [command = ''] = /kubectl .*? get pods \S+ \S+/.exec(message?.message ?? '') ?? [];
    await eventually(
      () => rig.type(command, node.desk),
      (printed) => /ErrImagePull|ImagePullBackOff/.test(printed),
    );
    await rig.kubectl('-n team delete gatewayinstance unpulled');
  });

  test('ten keys of one apply are usable a moment later', async () => {
    const { baseURL } = await open('default', 'llm-gateway', 'first-key');
    await rig.kubectl('apply -f -', { apiVersion: 'v1', kind: 'List', items: KEYS.map((name) => keyOf(name)) });
    const began = performance.now();
    const used = KEYS.map(async (name) => {
      const published = () => rig.call('GET', `/api/v1/namespaces/default/secrets/${name}-key`);
      const { body } = await eventually(published, ({ status }) => status === 200);
      const value = (body as { data: { key: string } }).data.key;
      const apiKey = Buffer.from(value, 'base64').toString();
      const ask = () => fetch(`${baseURL}/models`, { headers: { authorization: `Bearer ${apiKey}` } });
      await eventually(ask, ({ status }) => status === 200);
      return performance.now() - began;
    });
    const millis = (await Promise.all(used)).sort((a, b) => a - b).map(Math.round);
    node.note(
      `${millis[0]} to ${millis.at(-1)} ms from the end of an apply of ${KEYS.length} keys until each is usable`,
    );
  });

  test(
    'under load, a rolling update and the eviction of every Pod lose no request, of the gateway and of admission',
    async () => {
      const before = await node.booked();
      const load = await startTeamLoad();
      const rolled = { spec: { workload: { podAnnotations: { rolled: 'yes' } } } };
      await rig.kubectl(`-n team patch gatewayinstance team --type=merge -p ${JSON.stringify(rolled)}`);
      await eventually(
        () => rig.kubectl('-n team get pods -o jsonpath={..annotations.rolled}'),
        (printed) => printed === 'yes yes',
        LONG,
      );
      await rig.kubectl('-n gateway-operator rollout restart deployment/admission');
      await rig.kubectl('-n gateway-operator rollout status deployment/admission --timeout=120s');
      await evictAll(rig, 'team', 'gateway');
      await evictAll(rig, 'gateway-operator', 'admission');
      const { calls, patches, faults } = await load.stop();
      node.note(`${faults.length} of ${calls} calls and ${patches} patches failed over two rolls and two drains`);
      expect(faults).toEqual([]);
      await eventually(node.booked, ({ count }) => count === before.count + calls);
    },
    LONG,
  );

  test(
    'a roll of a gateway whose Pods are never two says nothing about its keys, which stay active',
    async () => {
      const output = async () => {
        const { body } = await rig.call('GET', '/api/v1/namespaces/default/events');
        const { items } = body as { items: Array<{ type: string; involvedObject: { kind: string } }> };
        return items.filter(({ type, involvedObject: { kind } }) => type === 'Warning' && kind === 'VirtualKey').length;
      };
      const instance = async () => (await rig.call('GET', OURS('default', 'llm'))).body as Instance;
      // Only a resync counts.
      await eventually(instance, ({ status }) => status?.keys?.active === KEYS.length + 1, LONG);
      const before = await output();
      const rolled = { spec: { workload: { podAnnotations: { rolled: 'yes' } } } };
      await rig.kubectl(`patch gatewayinstance llm --type=merge -p ${JSON.stringify(rolled)}`);
      const active = new Set<number | undefined>();
      const isRolled = async () => {
        const { status } = await instance();
        active.add(status?.keys?.active);
        const pods = await rig.kubectl('get pods -l app.kubernetes.io/instance=llm -o jsonpath={..annotations.rolled}');
        return pods === 'yes' && status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
      };
      await eventually(isRolled, (is) => is, LONG);
      expect([...active]).toEqual([KEYS.length + 1]);
      expect(await output()).toBe(before);
    },
    LONG,
  );

  test(
    'hostile clients on every port of every Pod harm nobody: each call and each write succeeds, and no container restarts',
    async () => {
      const pods = await podsOf(rig, 'gateway-operator', 'team', 'default');
      const targets = pods.flatMap(({ spec, status }) =>
        spec.containers.flatMap(({ ports = [] }) =>
          ports.map(
            ({ name, containerPort }) => `${name === 'https' ? 'https' : 'http'}://${status.podIP}:${containerPort}`,
          ),
        ),
      );
      expect(targets.length).toBeGreaterThanOrEqual(10);
      const load = await startTeamLoad();
      const flood = join(import.meta.dirname, 'flood.ts');
      const { code, stdout, stderr } = await rig.run(process.execPath, [flood, `${FLOOD}`, ...targets]);
      expect(`${code} ${stderr}`).toBe('0 ');
      const { calls, patches, faults } = await load.stop();
      node.note(
        `${faults.length} of ${calls} calls and ${patches} patches failed under hostile clients: ${stdout.trim()}`,
      );
      expect(faults).toEqual([]);
      const restarts = (await podsOf(rig, 'gateway-operator', 'team', 'default')).map(
        ({ status }) => status.containerStatuses?.[0]?.restartCount,
      );
      expect(restarts.filter((count) => count !== 0)).toEqual([]);
    },
    LONG,
  );

  test(
    'kill -9 of a gateway in the middle of charged requests loses nothing that the provider has billed',
    async () => {
      const team = client(await open('team', 'team-gateway', 'team-key'));
      /** The provider's bill: each reported reply, and at least the prompt of each that it was told to stop. */
      const billed = () => {
        const { echo, slow } = node.upstream.stats.read().models;
        return costOf(echo) + costOf(slow) + (slow?.abandoned ?? 0) * PROMPT;
      };
      const ask = (model: string) =>
        team.chat.completions.create({ model, messages: MESSAGES, max_tokens: MAX_TOKENS, stream: true });
      const [before, billedBefore] = [await node.booked(), billed()];
      const read = async (model: string) => {
        for await (const chunk of await ask(model)) expect(chunk.object).toBe('chat.completion.chunk');
        return 'whole';
      };
      const streams = Array.from({ length: 8 }, () => read('slow'));
      const short = Array.from({ length: 40 }, (_, index) => pause(50 * index).then(() => read('echo')));
      const reading = Promise.all([...streams, ...short].map((one) => one.catch(() => 'cut')));
      await pause(1500);
      const [pod] = await podsOf(rig, 'team');
      const container = pod?.status.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? '';
      const socket = join(rig.state, 'containerd.sock');
      const killed = await rig.run('ctr', ['-a', socket, '-n', 'k8s.io', 'tasks', 'kill', '-s', 'SIGKILL', container]);
      expect(`${killed.code} ${killed.stderr}`).toBe('0 ');
      const ends = await reading;
      const cut = ends.filter((end) => end === 'cut').length;
      expect(cut).toBeGreaterThan(0);
      // The successor on the same journal books what was settled, and charges each open reservation whole.
      const whole = before.settled + ends.length - cut;
      const after = await eventually(
        node.booked,
        ({ settled, cost }) => settled >= whole && cost - before.cost >= billed() - billedBefore,
        100_000,
      );
      const [bill, spend] = [billed() - billedBefore, after.cost - before.cost];
      node.note(`kill -9 cut ${cut} of ${ends.length} requests: billed $${bill / 1e9}, booked $${spend / 1e9}`);
      expect(spend).toBeLessThanOrEqual(bill + cut * MAX_RESERVATION);
      await rig.kubectl('-n team rollout status deployment/team-gateway --timeout=60s');
    },
    LONG,
  );

  test(
    'the version before and back: no call and no write fails, and every key keeps its value',
    async () => {
      const before = await buildBefore(node.folder);
      await rig.importImage(before.archive);
      const value = await node.keyIn('default', 'k0-key');
      const load = await startTeamLoad();
      for (const { desk, image } of [before, { desk: node.desk, image: RELEASE_IMAGE }]) {
        await rig.type(
          `kubectl apply -f infra/platforms/kubernetes/crds.yaml
           sed "s|${RELEASE_IMAGE}|${image}|" infra/platforms/kubernetes/install.yaml | kubectl apply -f -
           kubectl -n gateway-operator rollout status deployment/reconcile --timeout=120s
           kubectl -n gateway-operator rollout status deployment/admission --timeout=120s`,
          desk,
        );
        await eventually(
          () => rig.kubectl('-n team get pods -o jsonpath={.items[*].spec.containers[0].image}'),
          (images) => images === `${image} ${image}`,
          LONG,
        );
      }
      const { calls, patches, faults } = await load.stop();
      node.note(`${faults.length} of ${calls} calls and ${patches} patches failed over ${before.commit} and back`);
      expect(faults).toEqual([]);
      expect(await node.keyIn('default', 'k0-key')).toBe(value);
    },
    2 * LONG,
  );

  test(
    'a leaked CA is replaced by the commands of the page, and no write fails meanwhile',
    async () => {
      const load = await startTeamLoad();
      for (const step of ['new CA', 'new certificate', 'distrust'])
        await rig.type(documented('docs/install/kubernetes.md', step), node.desk);
      await pause(5_000);
      const { patches, faults } = await load.stop();
      node.note(`${faults.length} of ${patches} patches failed while the CA was replaced`);
      expect(faults).toEqual([]);
    },
    LONG,
  );

  /** Secrets of the page's example, which their author deletes. */
  const SECRETS = ['secret/llm-database', 'secret/llm-store'];

  test(
    'by the page, the operator goes and leaves nothing',
    async () => {
      const began = performance.now();
      await uninstall();
      node.note(`${seconds(began)} s to remove the operator with two instances and ${KEYS.length + 2} keys`);
      expect(await replays(rig)).toEqual(SECRETS);
    },
    LONG,
  );

  test(
    'after its namespace was deleted first, the page still removes all of it',
    async () => {
      await install();
      await rig.kubectl('delete namespace gateway-operator');
      // People who clean up continue here, and get stuck.
      await rig.kubectl('delete virtualkeys,gatewayinstances --all --wait=false');
      const began = performance.now();
      await uninstall();
      node.note(`${seconds(began)} s to remove what is left when the namespace was deleted first`);
      await rig.type(documented('docs/install/uninstall.md', 'key Secrets'), node.desk);
      expect(await replays(rig)).toEqual(SECRETS);
    },
    2 * LONG,
  );

  test(
    'after its manifests were deleted first, one command of the page frees a namespace that waits for finalizers',
    async () => {
      await install();
      await rig.kubectl('apply -f -', teamOf(node.database));
      await rig.kubectl('-n team wait gatewayinstance/team virtualkey/team --for=condition=Ready --timeout=120s');
      await rig.kubectl('delete -f infra/platforms/kubernetes/install.yaml --timeout=120s');
      await rig.kubectl('delete namespace team --wait=false');
      const message = () => rig.kubectl('get namespace team -o jsonpath={.status.conditions[*].message}');
      await eventually(
        message,
        (output) => output.includes('finalizers remaining: gateway-operator.dev/cleanup'),
        LONG,
      );
      const began = performance.now();
      await rig.type(documented('docs/install/uninstall.md', 'free'), node.desk);
      await rig.kubectl('wait --for=delete namespace/team --timeout=30s');
      node.note(
        `${seconds(began)} s from the command of the page until a namespace that waited for finalizers is gone`,
      );
    },
    2 * LONG,
  );
});

interface Instance {
  readonly status?: {
    readonly conditions?: ReadonlyArray<Readonly<Record<string, string>>>;
    readonly keys?: { readonly active?: number };
  };
}
