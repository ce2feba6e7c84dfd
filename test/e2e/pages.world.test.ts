// The blocks of pages for operators and of the README, as a reader types them, against the local stack.
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { Values } from '../../infra/packaging/helm/values.ts';
import { documented } from '../platforms/documented.ts';
import { eventually } from '../support/eventually.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../support/redis.ts';
import { testUnless } from '../support/skip-unless.ts';
import { describeOnBothClusters } from './both-clusters.ts';
import { openPageDesk, type PageDesk } from './page-desk.ts';

const LONG = 120_000;

const README = (name: string, language?: string) => documented('README.md', name, language);
const operate = (page: string, name: string, language?: string) =>
  documented(`docs/operate/${page}.md`, name, language);
const install = (page: string, name: string) => documented(`docs/install/${page}.md`, name);

// Deletions and other blocks that others need are last.
describeOnBothClusters('pages', ['--schedule', '86400'], (stack, cluster) => {
  let desk: PageDesk;
  let redis: TestRedis | undefined;
  beforeAll(async () => {
    desk = openPageDesk(stack());
    if (whyNoRedis() === undefined) redis = await startRedis();
    await desk.type(`kubectl apply -f docs/samples/gateway.yaml -f docs/samples/team.yaml -f docs/samples/developer.yaml
      kubectl wait gatewayinstance/llm -n llm --for=condition=Ready --timeout=60s
      kubectl wait virtualkey/claude-grace -n team-web --for=condition=Ready --timeout=60s`);
  }, LONG);
  afterAll(() => redis?.stop());

  const type: PageDesk['type'] = (text, more) => desk.type(text, more);
  /** The shell of somebody who has read the README up to its first call. */
  const shell = (text: string) => type([README('kubeconfig'), README('value'), text].join('\n'));
  const query = async (text: string) => {
    const { host, port, username, password, dbname } = stack().endpoints.database;
    const client = new Client({ host, port, user: username, password, database: dbname });
    await client.connect();
    const { rows } = await client.query(text).finally(() => client.end());
    return rows.at(-1);
  };
  /** An object accepts a part of its spec, or of another member, on a dry run. */
  const accepts = (object: string, member: 'spec' | undefined, part: string) => {
    const value: object = parse(part);
    const patch = JSON.stringify(member === undefined ? value : { [member]: value });
    return type(`kubectl patch ${object} -n llm --type=merge --dry-run=server -p '${patch}'`);
  };

  test(
    'ten minutes of the README',
    async () => {
      await shell(README('apply'));
      expect(await shell(README('list'))).toMatch(/^gatewayinstance\S+\/sample +http/m);
      expect(await shell(README('call'))).toMatch(/upstream.*Hello/);
      // The gateway chooses at random which entry it calls first.
      const over = await eventually(
        () => shell(README('fail over')),
        (text) => text.includes('"attempts":2'),
      );
      expect(over.match(/"object":"chat.completion"/g)).toHaveLength(5);
      await shell(README('raise'));
      const limited = await shell(README('limit'));
      expect(limited.match(/^HTTP\/1.1 \d+/gm)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 429']);
      expect(limited).toMatch(/^retry-after: \d+/m);
      const spent = await shell(README('spend'));
      expect(spent).toMatch(/x-gateway-clamped-to/);
      expect(spent).toContain('"code":"budget_exceeded"');
      await expect(shell(README('mistake'))).rejects.toMatchObject({
        stderr: expect.stringContaining('did you mean "sample-small"'),
      });
    },
    LONG,
  );

  test('the VirtualKey of the README, and the reply when its budget is spent', async () => {
    await type(`kubectl apply -f - <<'END'\n${README('key', 'yaml')}\nEND\nkubectl wait vk/ada --for=condition=Ready`);
    const call = README('call').split('\n')[0]?.replace('$KEY', '$ADA');
    const ask = () => shell(`ADA=$(kubectl get secret ada-key -o jsonpath='{.data.key}' | base64 -d)\n${call}`);
    await eventually(ask, (text) => text.includes('sample upstream'));
    // Six calls cost more than this.
    for (const _ of Array(5)) await ask();
    await type(`kubectl patch vk ada --type=merge -p '{"spec":{"maxBudget":"0.00003"}}'`);
    const reply = await eventually(ask, (text) => text.includes('budget_exceeded'));
    const shown = JSON.parse(README('exceeded', 'json')).error;
    const { error } = JSON.parse(reply);
    expect(Object.keys(error)).toEqual(Object.keys(shown));
    const withoutNumbers = (text: string) => text.replaceAll(/\d[\dTZ:.-]*\d(Z|d)?|\d+/g, '0');
    expect(withoutNumbers(error.message)).toBe(withoutNumbers(shown.message));
  });

  test('the local stack', async () => {
    const shown = JSON.parse(operate('local-stack', 'endpoints', 'json'));
    const { endpoints } = stack();
    expect(Object.keys(shown).sort()).toEqual(Object.keys(endpoints).sort());
    expect(Object.keys(shown.database).sort()).toEqual(Object.keys(endpoints.database).sort());
    await shell(operate('local-stack', 'claude'));
    expect(await shell(operate('local-stack', 'claude call'))).toContain('"type":"message"');
  });

  test('troubleshooting without Pods', async () => {
    const block = (name: string) => operate('troubleshooting', name);
    expect(await type(block('overview'))).toMatch(/virtualkey\S+\/claude-grace +claude-grace +True/);
    expect(JSON.parse(await type(block('ready')))).toMatchObject({ type: 'Ready', status: 'True' });
    expect(await type(block('instance'))).toContain('WorkloadReady');
    expect(await type(block('finalizers'))).toMatch(/^\["gateway-operator\.dev\/cleanup"\] \S/);
    const value = `KEY=$(kubectl get secret claude-grace-key -n team-web -o jsonpath='{.data.key}' | base64 -d)`;
    expect(await type(`${value}\n${block('spend')}`, { BASE_URL: desk.url })).toContain('"alias":"claude-grace"');
  });

  test('operations', async () => {
    expect(await type(operate('database', 'ready'))).toContain('PostgreSQL at ');
    expect(await type(operate('redis', 'ready'))).not.toBe('');
    expect(await type(operate('gateways', 'workload'))).toMatch(/^NAME +URL +READY.*\nllm +http\S+ +True/);
    expect(await type(operate('admission', 'ignore'))).toContain('"failurePolicy": "Ignore"');
  });

  test('YAML of operations fits the objects', async () => {
    for (const name of ['core', 'scale', 'proxy', 'authorities'])
      await accepts('gatewayinstance llm', 'spec', operate('gateways', name, 'yaml'));
    await accepts('gatewayinstance llm', 'spec', operate('gateways', 'memory', 'yaml'));
    await accepts('gatewayinstance llm', 'spec', operate('redis', 'keys', 'yaml'));
    await accepts('secret llm-database', undefined, operate('database', 'Secret', 'yaml'));
    const values = parse(operate('metrics', 'values', 'yaml'));
    expect(Values.parse(values)).toMatchObject(values);
    await type(install('upgrade', 'end of the trial'));
    // The embedded cluster has no quotas, and no policies.
    if (cluster === 'embedded') return;
    const quota = operate('reconciler', 'quota', 'yaml');
    await type(`kubectl create namespace team-a\nkubectl apply -f - <<'END'\n${quota}\nEND`);
    for (const name of ['policies', 'policies on EKS', 'gateway policies']) await type(install('kubernetes', name));
    await type(install('kubernetes', 'one team'));
  });

  test('the size of the database, and its instances', async () => {
    expect(await query(documented('docs/concepts/capacity.md', 'database', 'sql'))).toMatchObject({
      size: expect.stringMatching(/kB|MB/),
      requests: expect.stringMatching(/^\d+$/),
    });
    const instances = documented('docs/guides/back-up-and-restore.md', 'instances', 'sql');
    expect(await query(instances)).toMatchObject({ namespace: 'llm', name: 'llm', closed_at: null });
  });

  testUnless(whyNoRedis(), 'the size of Redis', async () => {
    const port = redis?.connection.port;
    const text = documented('docs/concepts/capacity.md', 'redis');
    expect(await type(`redis-cli() { command redis-cli -p ${port} "$@"; }\n${text}`)).toMatch(
      /^used_memory_human:\S+\s+0\n$/,
    );
  });

  test('Secrets and rights that other tools need', async () => {
    const bundle = 'echo certificates > eu-central-1-bundle.pem';
    const addresses = { HOST: 'postgres.example.com', PASSWORD: 'change-me' };
    const text = install('managed-cloud', 'database Secret');
    expect(await type(`${bundle}\n${text}`, addresses)).toContain('secret/llm-database created');
    await type(`kubectl create namespace argocd\n${operate('gitops', 'health')}`);
    // A real API server has the namespace already, with the rights of the functions.
    if (cluster === 'embedded') await type(operate('gitops', 'Secret'));
    else expect(await type(install('workers', 'accounts'))).toMatch(/\neyJ\S+eyJ\S+$/);
  });

  test('the end: what stays, the sample, the webhook configurations', async () => {
    await type(install('uninstall', 'what stays'));
    await shell(README('delete'));
    const webhooks = install('workers', 'webhooks').replace('SEGMENT', 'an-unguessable-segment');
    for (const text of [install('uninstall', 'webhooks'), operate('local-stack', 'webhooks')]) {
      await type(`${webhooks}\n${text}`);
      expect(await type('kubectl get validatingwebhookconfigurations -o name')).toBe('');
    }
  });
});
