// The chart: rendered by Helm, taken by a real API server, installed, upgraded and removed again.
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { type Cluster, type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, kinds, virtualKeys } from '#crds/kinds/kinds.ts';
import { CONFIGURATION_NAME, WEBHOOK_CONFIGURATIONS } from '../../functions/reconcile/certificates/objects.ts';
import { METRICS_PORT, PORT } from '../../functions/reconcile/workload/pod.ts';
import { readDocuments } from '../../infra/packaging/manifests/apply.ts';
import { toKubeconfig } from '../../infra/platforms/local/cluster/kubeconfig.ts';
import { CHART, helm, KUBE_VERSION, RENDERED_FILES, renderManifest } from '../../infra/tools/chart.ts';
import { run } from '../support/child.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { linkBundles, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { documented, type } from './documented.ts';
import { runJobs } from './jobs.ts';
import { type ReconcileProcess, resyncOnce, startReconcile } from './node-process.ts';
import { apply, sampleFor } from './world.ts';

const HELM = process.env.HELM ?? 'helm';
const whyNoHelm =
  spawnSync(HELM, ['version']).error === undefined ? undefined : 'no helm in the PATH, and HELM names none';
const NAMESPACE = 'gateway-operator';
const IMAGE = '--set=image.repository=registry.example.com/gateway-operator';

const template = (...args: string[]) =>
  helm(['template', 'gateway-operator', CHART, KUBE_VERSION, `--namespace=${NAMESPACE}`, IMAGE, ...args]);

describeUnless(whyNoHelm, 'the chart, rendered', () => {
  test('the linter finds nothing', () => {
    const output = helm(['lint', '--strict', CHART, KUBE_VERSION, IMAGE, '--set=quickstart.enabled=true']);
    expect(output).toContain('1 chart(s) linted, 0 chart(s) failed');
  });

  test.each([
    ['replicaCount=2', 'replicaCount'],
    ['admission.replica=2', 'replica'],
    ['admission.replicas=two', 'admission.replicas'],
    ['image.digest=sha256:short', 'image.digest'],
    ['uninstall.objects=Orphan', 'uninstall.objects'],
    ['networkPolicies.enabled=true', 'networkPolicies.podCidrs is required'],
    ['image.repository=', 'image.repository is required'],
  ])('%s is refused', (value, words) => {
    expect(() => template(`--set=${value}`)).toThrow(words.split('.').at(-1));
  });

  test('the manifests of the repository are what the chart renders', () => {
    for (const file of RENDERED_FILES) expect(readFileSync(file, 'utf8')).toBe(renderManifest('.', file));
    const rendered = readDocuments(template('--show-only=templates/crds.yaml', '--set=crds.keep=false'));
    const byName = (documents: ReadonlyArray<KubeObject>) => new Map(documents.map((one) => [one.metadata.name, one]));
    expect(byName(rendered)).toEqual(
      byName(readDocuments(readFileSync('infra/platforms/kubernetes/crds.yaml', 'utf8'))),
    );
  });

  test('the kinds outlive the release unless the values say otherwise', () => {
    const policies = (text: string) =>
      readDocuments(text).map(({ metadata }) => metadata.annotations?.['helm.sh/resource-policy']);
    expect(policies(template('--show-only=templates/crds.yaml'))).toEqual(kinds.map(() => 'keep'));
  });

  test('values reach the functions: image by digest, pull Secrets of both, variables, nodes', () => {
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;
    const text = template(
      ...['--set', `image.repository=ghcr.io/example/op,image.digest=${digest}`],
      ...[
        '--set',
        'imagePullSecrets[0].name=own,gateways.imagePullSecrets[0].name=a,gateways.imagePullSecrets[1].name=b',
      ],
      ...['--set', 'extraEnv[0].name=LOG_LEVEL,extraEnv[0].value=warn,nodeSelector.disk=ssd,reconcile.retainDays=90'],
      ...['--set-json', 'tolerations=[{"operator":"Exists"}]', '--set', 'podAnnotations.a=b,priorityClassName=high'],
      ...['--set', 'caConfigMap.name=corporate-ca'],
      ...['--set-json', 'secretMetadataPrefixes=["example.com","example.org"]'],
    );
    const deployments = readDocuments(text).filter(({ kind }) => kind === 'Deployment');
    expect(deployments).toHaveLength(2);
    for (const { spec } of deployments) {
      expect(spec).toMatchObject({
        template: {
          metadata: { annotations: expect.objectContaining({ a: 'b' }) },
          spec: {
            imagePullSecrets: [{ name: 'own' }],
            nodeSelector: { disk: 'ssd' },
            priorityClassName: 'high',
            tolerations: [{ operator: 'Exists' }],
            containers: [
              {
                image: `ghcr.io/example/op@${digest}`,
                env: expect.arrayContaining([
                  { name: 'LOG_LEVEL', value: 'warn' },
                  { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/operator/ca/ca.crt' },
                  // Both must refuse the same.
                  { name: 'SECRET_METADATA_PREFIXES', value: 'example.com,example.org' },
                ]),
              },
            ],
          },
        },
      });
    }
    for (const line of [
      'GATEWAY_PULL_SECRETS, value: "a,b"',
      'RETAIN_DAYS, value: "90"',
      `GATEWAY_IMAGE, value: "ghcr.io/example/op@${digest}"`,
    ])
      expect(text).toContain(line);
  });

  test('the archive of the reconciler: a bucket with an access key or a role, or a folder that is a volume', () => {
    const reconcilerOf = (...values: ReadonlyArray<string>) => {
      const documents = readDocuments(template(...values));
      const found = documents.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'reconcile');
      const account = documents.find(
        ({ kind, metadata }) => kind === 'ServiceAccount' && metadata.name === 'reconcile',
      );
      return { spec: found?.spec, annotations: account?.metadata.annotations };
    };
    const file = join(temporaryFolder(), 'values.yaml');
    writeFileSync(file, documented('docs/operate/archive.md', 'values', 'yaml'));
    const role = 'reconcile.serviceAccountAnnotations.eks\\.amazonaws\\.com/role-arn=arn:aws:iam::1:role/archive';
    const bucket = reconcilerOf('--values', file, '--set', role);
    expect(bucket.annotations).toEqual({ 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/archive' });
    const container = {
      env: expect.arrayContaining([{ name: 'ARCHIVE_URL', value: 's3://my-ledger/gateway-operator' }]),
      envFrom: [{ secretRef: { name: 'archive-aws' } }],
    };
    expect(bucket.spec).toMatchObject({ template: { spec: { containers: [container] } } });
    const folder = ['--set', 'reconcile.archive.url=file:///archive,reconcile.archive.claimName=ledger-archive'];
    const volumeMounts = [
      { name: 'ca', mountPath: '/etc/operator/ca', readOnly: true },
      { name: 'archive', mountPath: '/archive' },
    ];
    const volumes = [{ name: 'ca' }, { name: 'archive', persistentVolumeClaim: { claimName: 'ledger-archive' } }];
    expect(reconcilerOf(...folder, '--set', 'caConfigMap.name=corporate-ca').spec).toMatchObject({
      template: { spec: { securityContext: { fsGroup: 65532 }, containers: [{ volumeMounts }], volumes } },
    });
  });

  // Helm 3 asks for the log of the Pod that has a test's name, after it has deleted what succeeded.
  test('Helm 3 can read the log of the test: the Pod alone is a test, and outlives it', () => {
    const hooks = readDocuments(template()).filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'test');
    expect(hooks.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(['Pod check']);
    expect(hooks[0]?.metadata.annotations?.['helm.sh/hook-delete-policy']).toBe('before-hook-creation');
  });

  test('the metrics of gateways are for the namespaces that are named, and all else that they serve is for everybody', () => {
    const policies = (...values: string[]) =>
      readDocuments(template(...values.map((value) => `--set=networkPolicies.gateways.${value}`))).filter(
        ({ metadata }) => metadata.name === 'gateway-metrics',
      );
    expect(policies()).toEqual([]);
    const made = policies('namespaces={apps,research}', 'metricsFrom={prometheus}');
    expect(made.map(({ metadata }) => metadata.namespace)).toEqual(['apps', 'research']);
    const others = [8012, 8013, 8022, 8112, 9090, 9091].map((port) => ({ port }));
    const serving = { ports: [{ port: PORT }, ...others] };
    const from = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'prometheus' } } }];
    expect(made[0]?.spec).toMatchObject({ ingress: [serving, { from, ports: [{ port: METRICS_PORT }] }] });
    expect(policies('namespaces={apps}', 'metricsFrom=null')[0]?.spec).toMatchObject({ ingress: [serving] });
  });

  test('without the policy of the webhook, no network is needed; with one namespace there is no webhook', () => {
    const policies = (...values: string[]) =>
      readDocuments(template(...values.map((value) => `--set=${value.replace(/^(?!oneN)/, 'networkPolicies.')}`)))
        .filter(({ kind }) => kind === 'NetworkPolicy')
        .map(({ metadata }) => metadata.name);
    expect(policies('enabled=true', 'podCidrs={10.244.0.0/16}')).toEqual(['admission', 'reconcile']);
    expect(policies('enabled=true', 'webhook=false')).toEqual(['reconcile']);
    expect(policies('webhook=true')).toEqual([]);
    expect(policies('enabled=true', 'oneNamespace.enabled=true')).toEqual(['reconcile']);
  });

  test('every object but kinds and Pods has the labels that Kubernetes recommends', () => {
    const documents = readDocuments(template('--set=podMonitor.enabled=true,prometheusRule.enabled=true'));
    for (const { kind, metadata } of documents.filter(({ kind: one }) => !/^(CustomResourceDefinition|Pod)$/.test(one)))
      expect(metadata.labels, `${kind} ${metadata.name}`).toMatchObject({
        'app.kubernetes.io/name': expect.any(String),
        'app.kubernetes.io/instance': 'gateway-operator',
        'app.kubernetes.io/version': '0.1.0',
        'app.kubernetes.io/part-of': 'gateway-operator',
        'app.kubernetes.io/managed-by': 'Helm',
        'helm.sh/chart': 'gateway-operator-0.1.0',
      });
  });

  test('Prometheus scrapes gateways of Deployments and of Knative, which names their port and hides ours', () => {
    const [, gateways] = readDocuments(
      template('--set=podMonitor.enabled=true', '--show-only=templates/monitoring.yaml'),
    );
    const named = ['gateway', 'gateway-serving'];
    expect(gateways).toMatchObject({
      spec: {
        namespaceSelector: { any: true },
        selector: { matchExpressions: [{ key: 'app.kubernetes.io/name', operator: 'In', values: named }] },
        podMetricsEndpoints: [
          { port: 'metrics' },
          { port: 'user-port', relabelings: [{ targetLabel: '__address__', replacement: `$1:${METRICS_PORT}` }] },
        ],
      },
    });
    const one = template(
      '--set=podMonitor.enabled=true,oneNamespace.enabled=true',
      '--show-only=templates/monitoring.yaml',
    );
    expect(one).not.toContain('namespaceSelector');
  });

  test('in one namespace nothing belongs to the cluster: Roles, no webhook, and reconcile looks nowhere else', () => {
    const documents = readDocuments(template('--set=oneNamespace.enabled=true'));
    expect(documents.map(({ metadata }) => metadata.namespace)).toEqual(documents.map(() => NAMESPACE));
    const kindsOf = new Set(documents.map(({ kind }) => kind));
    expect(kindsOf).toContain('Role');
    expect([...kindsOf].filter((kind) => /^Cluster|Webhook|CustomResource/.test(kind))).toEqual([]);
    for (const { metadata, spec } of documents.filter(({ kind }) => /^(Deployment|Job)$/.test(kind))) {
      const env = expect.arrayContaining([{ name: 'WATCH_NAMESPACE', value: NAMESPACE }]);
      expect(spec, metadata.name).toMatchObject({ template: { spec: { containers: [{ env }] } } });
    }
    expect(() => template('--set=oneNamespace.enabled=true,quickstart.enabled=true')).toThrow('oneNamespace.enabled');
  });

  test('with cert-manager a CA that outlives the certificates of admission signs them, or an issuer of yours', () => {
    const rendered = (...more: string[]) => {
      const values = ['--set=certificates.certManager.enabled=true', ...more];
      const documents = readDocuments(template('--show-only=templates/certificate.yaml', ...values));
      return new Map(documents.map(({ kind, metadata, spec }) => [`${kind}/${metadata.name}`, spec as object]));
    };
    const own = rendered();
    const signedBy = (name: string) => ({ issuerRef: { name } });
    expect(own.get('Certificate/admission')).toMatchObject({ secretName: 'admission-tls', ...signedBy('admission') });
    expect(own.get('Issuer/admission')).toEqual({ ca: { secretName: 'admission-ca' } });
    const ca = { secretName: 'admission-ca', isCA: true, duration: '87600h', ...signedBy('self-signed') };
    expect(own.get('Certificate/admission-ca')).toMatchObject(ca);
    expect(own.get('Issuer/self-signed')).toEqual({ selfSigned: {} });
    const yours = rendered('--set=certificates.certManager.issuerRef.name=corporate');
    expect([...yours]).toEqual([['Certificate/admission', expect.objectContaining(signedBy('corporate'))]]);
  });

  test('a text among the further objects is a template', () => {
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: "{{ .Release.Name }}-more" }';
    expect(template('--set-json', `extraObjects=${JSON.stringify([text])}`)).toContain('name: "gateway-operator-more"');
  });
});

describeUnless(whyNoHelm ?? whyNoControlPlane(), 'the chart, on a cluster', () => {
  const folder = temporaryFolder();
  let server: TestControlPlane;
  let cluster: Cluster;
  let reconcile: ReconcileProcess | undefined;
  const closing: Array<() => Promise<unknown>> = [];

  beforeAll(async () => {
    [server] = await Promise.all([startControlPlane({ controllers: ['namespace-controller'] }), linkBundles(folder)]);
    const transport = await createKubeconfigTransport(server.kubeconfig);
    closing.push(transport.close);
    cluster = createCluster({ request: transport.request });
  });
  afterAll(async () => {
    await reconcile?.stop();
    for (const close of closing) await close();
    await server?.stop();
  });

  const kubectl = async (args: string[], stdin?: string) => {
    const { code, stdout, stderr } = await run('kubectl', args, { KUBECONFIG: server.kubeconfig }, stdin);
    expect(`${code} ${stderr}`).toBe('0 ');
    return stdout;
  };
  /** Without blocking the test, which runs the Jobs that Helm waits for. */
  const helmThere = async (...args: string[]) => {
    const env = { ...process.env, KUBECONFIG: server.kubeconfig, HELM_NAMESPACE: NAMESPACE };
    const { stdout, stderr } = await promisify(execFile)(HELM, args, { env });
    expect(stderr).toBe('');
    return stdout;
  };

  test.each([
    ['default values', []],
    [
      'every part of its own',
      [
        'networkPolicies.enabled=true',
        'networkPolicies.podCidrs={10.244.0.0/16,fd00::/8}',
        'networkPolicies.gateways.namespaces={default,kube-public}',
        'grafanaDashboard.enabled=true',
      ],
    ],
    ['the quickstart', ['quickstart.enabled=true', 'quickstart.namespace=default']],
    [
      'deleting when it goes',
      ['uninstall.objects=Delete', 'crds.keep=false', 'admission.podDisruptionBudget.enabled=false'],
    ],
  ])('the API server takes every object of the chart with %s', async (_, values) => {
    await run('kubectl', ['create', 'namespace', NAMESPACE], { KUBECONFIG: server.kubeconfig });
    const objects = parseAllDocuments(template(...values.map((value) => `--set=${value}`)))
      .map((document) => document.toJS() as KubeObject | null)
      .filter((object) => object !== null)
      // The dry run of a Pod looks for its account, which the dry run before it did not make.
      .filter(({ kind, metadata }) => kind !== 'Pod' && metadata.name !== 'default');
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const output = await kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], list);
    expect(output.match(/ created \(server dry run\)$/gm)).toHaveLength(objects.length);
  });

  const secretOf = async () =>
    (await cluster.get(RESOURCES.secrets, NAMESPACE, 'gateway-operator'))?.data as Record<string, string>;
  const hooksOf = () =>
    Promise.all(
      WEBHOOK_CONFIGURATIONS.map(async (hook) => (await cluster.get(hook, undefined, CONFIGURATION_NAME))?.webhooks),
    );

  /** Variables of a container that have a value of their own. */
  const variablesOf = async (deployment: string) => {
    const path = 'jsonpath={.spec.template.spec.containers[0].env}';
    const args = ['-n', NAMESPACE, 'get', 'deployment', deployment, '-o', path];
    const get = () => run('kubectl', args, { KUBECONFIG: server.kubeconfig });
    const { stdout } = await eventually(get, ({ code }) => code === 0);
    const env = JSON.parse(stdout) as ReadonlyArray<{ readonly name: string; readonly value?: string }>;
    return new Map(env.map(({ name, value }) => [name, value]));
  };

  test('installs with its quickstart: reconcile writes path and CA as it starts, asked by nobody, and an instance and a key are put', async () => {
    const install = helmThere(
      'install',
      'gateway-operator',
      CHART,
      '--create-namespace',
      '--timeout=60s',
      IMAGE,
      '--set=quickstart.enabled=true',
      '--set=admission.failurePolicy=Ignore',
    );
    const account = await eventually(
      () => run('kubectl', ['-n', NAMESPACE, 'create', 'token', 'reconcile'], { KUBECONFIG: server.kubeconfig }),
      ({ code }) => code === 0,
    );
    const file = join(folder, 'reconcile.kubeconfig');
    writeFileSync(file, toKubeconfig({ url: server.url, ca: server.ca, token: account.stdout.trim() }));
    const { 'admission-path': path = '', 'reconcile-token': token = '' } = await eventually(
      secretOf,
      (data) => data !== undefined,
    );
    const [segment, RECONCILE_TOKEN] = [path, token].map((text) => Buffer.from(text, 'base64').toString());
    reconcile = await startReconcile(join(folder, 'node/reconcile.mjs'), {
      KUBECONFIG: file,
      RECONCILE_TOKEN: RECONCILE_TOKEN ?? '',
      PATH_SECRETS: segment ?? '',
      ADMISSION_SERVICE: `${NAMESPACE}/admission`,
      RESYNC_AT_START: (await variablesOf('reconcile')).get('RESYNC_AT_START') ?? 'false',
    });
    const jobs = runJobs({ server, cluster, folder, environment: { RECONCILE_URL: reconcile.url } });
    closing.unshift(jobs.stop);
    const output = await install;
    expect(output).toContain('The quickstart has an instance and a key in the namespace gateway-quickstart');
    const removal = [...output.matchAll(/^ {2}(kubectl delete|helm uninstall) \S+/gm)].map(([line]) => line.trim());
    expect(removal).toEqual([
      'kubectl delete llm-gateway',
      'helm uninstall gateway-operator',
      'kubectl delete namespace',
    ]);
    expect(jobs.ended).toMatchObject([
      {
        name: 'quickstart',
        code: 0,
        stdout: expect.stringContaining('applied VirtualKey gateway-quickstart/quickstart'),
      },
    ]);
    const service = { namespace: NAMESPACE, name: 'admission', port: 443 };
    const caBundle = expect.stringMatching(/^LS0t/);
    const entry = (verb: string) =>
      expect.objectContaining({ clientConfig: { caBundle, service: { ...service, path: `/${segment}/${verb}` } } });
    const written = [[entry('mutate')], [entry('validate'), entry('validate')]];
    await eventually(hooksOf, (hooks) => JSON.stringify(hooks).match(/caBundle/g)?.length === 3);
    expect(await hooksOf()).toEqual(written);
    expect(await cluster.get(virtualKeys, 'gateway-quickstart', 'quickstart')).toBeDefined();
  });

  test('an upgrade changes neither the secrets, nor the path and the CA in the webhooks', async () => {
    const before = [await secretOf(), await hooksOf()];
    const output = await helmThere(
      'upgrade',
      'gateway-operator',
      CHART,
      '--no-hooks',
      '--reuse-values',
      '--set=admission.replicas=3',
    );
    expect(output).toContain('STATUS: deployed');
    expect([await secretOf(), await hooksOf()]).toEqual(before);
    const deployment = JSON.parse(await kubectl(['-n', NAMESPACE, 'get', 'deployment', 'admission', '-o', 'json']));
    expect(deployment.spec.replicas).toBe(3);
  });

  test('after a leak of its CA, the commands of the page leave the new CA alone in every webhook, and change no manifest', async () => {
    const operator = () => kubectl(['-n', NAMESPACE, 'get', 'deployments,cronjobs', '-o', 'jsonpath={.items[*].spec}']);
    const trusted = async () => {
      const bundles = (await hooksOf()).flatMap((webhooks) =>
        (webhooks as Array<{ clientConfig: { caBundle: string } }>).map(({ clientConfig }) => clientConfig.caBundle),
      );
      expect(bundles).toEqual([bundles[0], bundles[0], bundles[0]]);
      return Buffer.from(bundles[0] ?? '', 'base64').toString();
    };
    const page = (step: string) => type(documented('docs/install/kubernetes.md', step), folder, server.kubeconfig);
    // No run waits for the database of the quickstart, which is not there.
    const paused = { spec: { paused: true } };
    await cluster.patch(gatewayInstances, 'gateway-quickstart', 'quickstart', paused);
    const [before, leaked] = [await operator(), await trusted()];
    await page('new CA');
    // Pods still show what the leaked one signed.
    expect(await trusted()).toMatch(leaked.trim());
    await page('distrust');
    const secret = (await cluster.get(RESOURCES.secrets, NAMESPACE, 'admission-tls'))?.data as Record<string, string>;
    const issued = Buffer.from(secret['ca.crt'] ?? '', 'base64').toString();
    expect(issued.trim()).not.toBe(leaked.trim());
    expect(await trusted()).toBe(issued);
    await kubectl(['-n', NAMESPACE, 'create', 'job', 'later-run', '--from=cronjob/reconcile']);
    await kubectl(['-n', NAMESPACE, 'wait', 'job/later-run', '--for=condition=Complete', '--timeout=60s']);
    await kubectl(['-n', NAMESPACE, 'delete', 'job', 'later-run']);
    expect(await trusted()).toBe(issued);
    expect(await operator()).toBe(before);
  });

  test('an upgrade after the Secret was lost makes another one, and restarts what read the lost one', async () => {
    const template = '{.spec.template.metadata.annotations}';
    const annotations = () =>
      kubectl(['-n', NAMESPACE, 'get', 'deployment', 'admission', '-o', `jsonpath=${template}`]);
    const upgrade = () => helmThere('upgrade', 'gateway-operator', CHART, '--no-hooks', '--reuse-values');
    await upgrade();
    const [before, lost] = [await annotations(), await secretOf()];
    await upgrade();
    expect(await annotations()).toBe(before);
    await kubectl(['-n', NAMESPACE, 'delete', 'secret', 'gateway-operator']);
    await upgrade();
    expect(await annotations()).not.toBe(before);
    expect((await secretOf())['reconcile-token']).not.toBe(lost['reconcile-token']);
  });

  test('goes without a trace but the kinds and what people made of them, which no finalizer holds any more', async () => {
    await kubectl(['create', 'namespace', 'team-a']);
    const instance = await cluster.get(gatewayInstances, 'gateway-quickstart', 'quickstart');
    const metadata = { name: 'theirs', namespace: 'team-a', finalizers: ['gateway-operator.dev/cleanup'] };
    const written = await cluster.create(gatewayInstances, { ...instance, metadata, status: undefined } as KubeObject);
    expect(written.ok).toBe(true);
    await helmThere('uninstall', 'gateway-operator', '--timeout=60s');
    const kept = await cluster.get(gatewayInstances, 'team-a', 'theirs');
    expect(kept?.metadata.finalizers).toBeUndefined();
    expect(
      await kubectl([
        'get',
        'clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations',
        '-o',
        'name',
      ]),
    ).not.toMatch(/gateway-/);
    await eventually(
      () => run('kubectl', ['get', 'namespace', 'gateway-quickstart'], { KUBECONFIG: server.kubeconfig }),
      ({ stderr }) => stderr.includes('NotFound'),
    );
    const left = await kubectl([
      '-n',
      NAMESPACE,
      'get',
      'all,serviceaccounts,secrets,roles,rolebindings,poddisruptionbudgets',
      '-o',
      'name',
    ]);
    // The certificate is reconcile's own, as it always was.
    expect(left.split('\n').filter(Boolean)).toEqual(['secret/admission-tls']);
    expect((await kubectl(['get', 'crd', '-o', 'name'])).match(/gateway-operator\.dev$/gm)).toHaveLength(kinds.length);
  });

  test('in one namespace the Role is enough for a resync that makes a gateway and keys, and other namespaces are left alone', async () => {
    const rendered = template('--set=oneNamespace.enabled=true', '--no-hooks', '--namespace=default');
    await kubectl(['apply', '-f', '-'], rendered);
    const token = (await kubectl(['-n', 'default', 'create', 'token', 'reconcile'])).trim();
    const file = join(folder, 'one-namespace.kubeconfig');
    writeFileSync(file, toKubeconfig({ url: server.url, ca: server.ca, token }));
    const database = await (await sharedPostgres()).createDatabase();
    // The labels of its own Namespace are read with the Role.
    const selector = { matchLabels: { 'kubernetes.io/metadata.name': 'default' } };
    const allowedNamespaces = { from: 'Selector', selector };
    const objects = sampleFor(database, 'http://127.0.0.1:1').map((object) =>
      object.kind === 'GatewayInstance'
        ? { ...object, spec: { ...(object.spec as object), workload: { type: 'Deployment' }, allowedNamespaces } }
        : object,
    );
    await apply(cluster, objects);
    const environment = { KUBECONFIG: file, WATCH_NAMESPACE: 'default' };
    const { observed, failed } = await resyncOnce(join(folder, 'node/reconcile.mjs'), environment);
    expect({ failed, instances: observed.GatewayInstance }).toEqual({ failed: {}, instances: 1 });
    const deployment = { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' };
    expect(await cluster.get(deployment, 'default', 'sample-gateway')).toBeDefined();
    expect(await cluster.get(RESOURCES.secrets, 'default', 'example-service-key')).toBeDefined();
    const theirs = await cluster.get(gatewayInstances, 'team-a', 'theirs');
    expect(theirs?.metadata.finalizers).toBeUndefined();
  });
});
