// The commands of docs/guides, as a reader types them, against the local stack.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SAMPLES } from '../../infra/tools/samples.ts';
import { documented } from '../platforms/documented.ts';
import { eventually } from '../support/eventually.ts';
import { describeOnBothClusters } from './both-clusters.ts';
import { openPageDesk, type PageDesk } from './page-desk.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Blocks that ran, by page. */
const used = new Map<string, Set<string>>();

function block(page: string, name: string, language?: string): string {
  used.set(page, (used.get(page) ?? new Set()).add(name));
  return documented(`docs/guides/${page}.md`, name, language);
}

// No resync comes by itself: what a page says happens by triggers.
/** The names of metrics in the texts of these guides. */
function metricsOf(pages: ReadonlyArray<string>): ReadonlyArray<string> {
  const texts = pages.map((page) => readFileSync(join(ROOT, `docs/guides/${page}.md`), 'utf8'));
  return [...texts.join().matchAll(/gateway_operator_\w+(?=[`{])/g)].map(([name]) => name);
}

describeOnBothClusters('guides', ['--schedule', '86400'], (stack, cluster) => {
  let desk: PageDesk;
  beforeAll(() => {
    desk = openPageDesk(stack());
    writeFileSync(join(desk.folder, 'developers.txt'), 'grace\nlinus\nmargaret\n');
  });

  const type: PageDesk['type'] = (text, more) => desk.type(text, more);
  const exposedMetrics = async () => {
    const { gateway, reconcile } = stack().endpoints;
    const texts = [gateway, reconcile].map(async (url) => (await fetch(new URL('/metrics', url))).text());
    return (await Promise.all(texts)).join();
  };
  const keyValue = () => type("kubectl get secret claude-grace-key -n team-web -o jsonpath='{.data.key}' | base64 -d");
  /** The reply to a request as Claude Code sends it, with this key value. */
  const chat = async (value: string) => {
    const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/json' };
    const body = { model: 'claude-sonnet-4-5', max_tokens: 32_000, messages: [{ role: 'user', content: 'Hello' }] };
    return (await fetch(`${desk.url}/messages`, { method: 'POST', headers, body: JSON.stringify(body) })).text();
  };
  const statusOf = (value: string) =>
    fetch(`${desk.url}/models`, { headers: { authorization: `Bearer ${value}` } }).then(({ status }) => status);

  test('thirty developers get Claude Code, and see their budgets', async () => {
    const page = 'give-developers-claude-code';
    for (const name of ['gateway', 'team', 'developers']) await type(block(page, name));
    const overview = await type(block(page, 'overview'));
    for (const name of ['grace', 'linus', 'margaret'])
      expect(overview).toMatch(new RegExp(`claude-${name} +claude-${name} +True`));
    // The embedded cluster allows everything.
    expect(overview).toMatch(cluster === 'real' ? /\nyes\nno\n$/ : /\nyes\nyes\n$/);
    const settings = block(page, 'settings');
    expect(await type(`${settings}\nenv`)).toMatch(/^ANTHROPIC_AUTH_TOKEN=sk-/m);
    const budget = JSON.parse(await type(`${settings}\n${block(page, 'budget')}`));
    expect(budget).toMatchObject({ alias: 'claude-grace', maxBudget: '50', budgetDuration: '1mo' });
    expect(await chat(await keyValue())).toContain('"type":"message"');
  });

  test('the message of a budget near its end is the one of the page', async () => {
    const page = 'give-developers-claude-code';
    /** Waits until it is in force: reading the budget spends nothing. */
    const setBudget = async (dollars: string) => {
      const patch = JSON.stringify({ spec: { maxBudget: dollars } });
      await type(`kubectl patch virtualkey claude-grace -n team-web --type=merge -p '${patch}'`);
      const budget = block('find-out-who-spent-what', 'own');
      await eventually(
        () => type(budget, { BASE_URL: desk.url, KEY: value }),
        (reply) => reply.includes(`"maxBudget":"${dollars}"`),
      );
    };
    const value = await keyValue();
    // Each request costs $0.000147; another one reserves at least $0.000585.
    for (const _ of Array(3)) await chat(value);
    await setBudget('0.0006');
    const pattern = block(page, 'spent', '')
      .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll(/[\dTZ:\\.-]*\d[\dTZ:\\.-]*/g, '\\S+');
    expect(JSON.parse(await chat(value)).error.message).toMatch(new RegExp(`^${pattern}$`));
    await setBudget('50');
    await type(block(page, 'warnings'));
  });

  test('the database knows who spent what', async () => {
    const page = 'find-out-who-spent-what';
    await stack().resync();
    expect(await type(block(page, 'keys'))).toMatch(/team-web +claude-grace +claude-grace +True +0\.0\d+ +50 +20\d\d-/);
    await type(`kubectl patch vk claude-grace -n team-web --type=merge -p '{"spec":{"tags":["cost-centre-4711"]}}'`);
    const { host, port, username, password, dbname } = stack().endpoints.database;
    const client = new Client({ host, port, user: username, password, database: dbname });
    await client.connect();
    const ask = async (name: string) => (await client.query(block(page, name, 'sql'))).rows;
    expect(await ask('week')).toContainEqual(expect.objectContaining({ namespace: 'team-web', name: 'claude-grace' }));
    expect(await ask('models')).toContainEqual(expect.objectContaining({ model: 'claude-sonnet-4-5', requests: '4' }));
    expect(await ask('requests')).toHaveLength(4);
    // Its month is a date of the page.
    for (const name of ['users', 'teams', 'users and models']) await ask(name);
    await eventually(
      () => ask('tags'),
      (rows) => rows.some(({ tag }) => tag === 'cost-centre-4711'),
    );
    await client.end();
    const url = `postgres://${username}:${password}@${host}:${port}/${dbname}`;
    // A reader types the query; here it is an argument.
    expect(await type(`${block(page, 'psql')} -c 'select 42'`, { DATABASE_URL: url })).toContain('42');
    const own = await type(block(page, 'own'), { BASE_URL: desk.url, KEY: await keyValue() });
    expect(JSON.parse(own)).toMatchObject({ alias: 'claude-grace' });
  });

  test('the metrics that guides name exist', async () => {
    const pages = ['find-out-who-spent-what', 'find-out-why-a-request-was-refused'];
    // Those of namespaces need a key policy.
    const named = metricsOf(pages).filter((name) => !name.includes('_namespace_'));
    expect(named).toHaveLength(6);
    const exposed = await exposedMetrics();
    expect(named.filter((name) => !exposed.includes(`${name}{`))).toEqual([]);
  });

  test('the reason of a refused request is found', async () => {
    const page = 'find-out-why-a-request-was-refused';
    expect(await type(block(page, 'virtualkey'))).toContain('Budget Reset Date:');
    const asked = await type(`${block(page, 'value')}\n${block(page, 'budgets')}`, { BASE_URL: desk.url });
    expect(asked).toContain('"scopes"');
    expect(await type(block(page, 'instance'))).toContain('ModelsReady');
    const log = readFileSync(join(stack().folder, 'stack.log'), 'utf8').split('\n');
    const line = log.find((text) => text.includes('"code":"budget_exceeded"'));
    const shown = JSON.parse(block(page, 'line', 'json'));
    expect(Object.keys(JSON.parse(line ?? '{}'))).toEqual(expect.arrayContaining(Object.keys(shown)));
  });

  test('a leaked value no longer works, and a new one does', async () => {
    const page = 'rotate-a-leaked-key';
    const leaked = await keyValue();
    await type(block(page, 'block'));
    await eventually(
      () => chat(leaked),
      (reply) => reply.includes('key_blocked'),
    );
    expect(await type(block(page, 'stopped'), { BASE_URL: desk.url, LEAKED: leaked })).toContain('key_blocked');
    expect(await type(block(page, 'which'), { LEAKED: leaked })).toBe('current\n');
    await type(block(page, 'replace'));
    expect(await type(block(page, 'which'), { LEAKED: leaked })).toBe('previous\n');
    await type(block(page, 'unblock'));
    const value = await keyValue();
    await eventually(
      () => Promise.all([statusOf(leaked), statusOf(value)]),
      (statuses) => `${statuses}` === '401,200',
    );
    expect(await type(block(page, 'events'))).toContain('the previous one no longer works');
    const refused = await type(block(page, 'refused'), { BASE_URL: desk.url, LEAKED: leaked });
    expect(refused).toContain('invalid_api_key');
  });

  test('a rotated value works beside its successor', async () => {
    const page = 'rotate-keys-on-a-schedule';
    const before = await keyValue();
    await type(block(page, 'rotate'));
    await eventually(keyValue, (value) => value !== before);
    await eventually(
      () => type(block(page, 'rotation')),
      (message) => message.includes('the previous one works until'),
    );
    expect(await statusOf(before)).toBe(200);
  });

  test('short commands of other guides run', async () => {
    await type(block('set-budgets', 'warnings'));
    await type(block('move-or-restore-a-key', 'retained'));
    await type('kubectl create namespace team-app');
    await type(block('move-or-restore-a-key', 'copy'));
    const uids = `kubectl get secret claude-grace-key -o jsonpath='{.metadata.annotations.auth\\.gateway-operator\\.dev/key-uid}'`;
    const owner = await type('kubectl get virtualkey claude-grace -n team-web -o jsonpath={.metadata.uid}');
    expect([await type(`${uids} -n team-web`), await type(`${uids} -n team-app`)]).toEqual([owner, owner]);
    await type(block('delete-keys', 'share'));
    await type(
      `kubectl apply -f ${SAMPLES}/keys.yaml && kubectl wait virtualkey --all -n team-web --for=condition=Ready`,
    );
    expect(await type(block('set-budgets', 'windows'))).toMatch(/^0 20\d\d-.*\n\[\{.*"budgetDuration":"1h"/);
    const page = readFileSync(join(ROOT, 'docs/guides/give-developers-claude-code.md'), 'utf8');
    const commands = [...page.matchAll(/\| `(kubectl [^`]+)` \|$/gm)].map(([, command = '']) => command);
    expect(commands).toHaveLength(3);
    for (const command of commands) await type(command);
    await type(block('delete-keys', 'delete').replaceAll('grace', 'linus'));
  });

  test('namespaces have budgets and policies of the instance', async () => {
    const page = 'limit-namespaces';
    await type(block(page, 'everybody'));
    const spent = block(page, 'spent');
    await eventually(
      () => type(spent),
      (output) => /^team-web: \S+ of 20 dollars until 20\d\d-\S+, policy everybody-else$/m.test(output),
    );
    await type(block(page, 'research'));
    expect(await type(block(page, 'policy'))).toMatch(/^team-lab +notebooks .* research +Delete$/m);
    await eventually(
      () => type(spent),
      (output) => /^team-lab: 0 of 1000 dollars until 20\d\d-\d\d-01T00:00:00Z, policy research$/m.test(output),
    );
    const message = block(page, 'message', '');
    const refused = await type(block(page, 'refused')).catch(({ stderr }) => stderr as string);
    expect(refused).toContain(message);
    expect(await type(block(page, 'violations'))).toContain('team-lab/notebooks: PolicyMet\n');
    await type(block(page, 'warnings'));
    const named = metricsOf([page, 'find-out-who-spent-what']).filter((name) => name.includes('_namespace_'));
    expect(named).toHaveLength(4);
    await stack().resync();
    const exposed = await exposedMetrics();
    expect(named.filter((name) => !exposed.includes(`${name}{`))).toEqual([]);
    const patch = JSON.stringify({ spec: { keyPolicies: null, blockedMessage: null } });
    await type(`kubectl patch gatewayinstance llm -n llm --type=merge -p '${patch}'`);
  });

  test('a team stays within the policy of tenants', async () => {
    const page = 'tenants';
    const [tenants, rights, refused] = ['tenants', 'rights', 'refused'].map((name) => block(page, name));
    const patch = JSON.stringify({ spec: parse(block(page, 'closed', 'yaml')) });
    await type(`kubectl patch gatewayinstance llm -n llm --type=merge --dry-run=server -p '${patch}'`);
    const message = block(page, 'message', '');
    // The embedded cluster has neither policies nor rights.
    if (cluster === 'embedded') return;
    await type(`${tenants}`);
    expect(await type(`${rights}`)).toBe('yes\nno\nno\nno\n');
    await eventually(
      () => type(`${refused}`).catch(({ stderr }) => stderr as string),
      (output) => output.includes(message),
    );
    const edit = (spec: object) =>
      stack().kubectl(['patch', 'vk', 'notebooks', '-n=team-data', '--type=merge', '-p', JSON.stringify({ spec })]);
    const ofFourMistakes = { teamRef: null, maxBudget: '101', budgetDuration: '1h', deletionPolicy: 'Retain' };
    for (const [field, value] of Object.entries(ofFourMistakes)) {
      expect((await edit({ [field]: value })).stderr).toContain(`spec.${field}: `);
      // A VirtualKey that does not follow the policy can be blocked, and nobody unblocks it.
      expect(await edit({ [field]: value, blocked: true })).toMatchObject({ code: 0 });
      expect((await edit({ blocked: false })).stderr).toContain(`spec.${field}: `);
      const followed = { teamRef: { name: 'team-data' }, maxBudget: '100', budgetDuration: '30d' };
      expect(await edit({ ...followed, deletionPolicy: 'Delete', blocked: false })).toMatchObject({ code: 0 });
    }
    // The operator is exempt: it removes the finalizer.
    await type('kubectl delete virtualkey notebooks -n team-data --timeout=30s');
  });

  test('eight providers can serve', async () => {
    await type(block('add-a-provider', 'apply'));
    const status = await eventually(
      () => type(block('add-a-provider', 'status')),
      (text) => text.split('\n').length > 8,
    );
    expect(status.match(/ true /g)).toHaveLength(8);
  });

  test('every block of these pages that is called tested ran', () => {
    expect(used.size).toBe(11);
    for (const [page, names] of used) {
      const text = readFileSync(join(ROOT, `docs/guides/${page}.md`), 'utf8');
      const tested = [...text.matchAll(/^<!-- tested: (.+) -->$/gm)].map(([, name = '']) => name);
      expect(tested.filter((name) => !names.has(name))).toEqual([]);
    }
  });
});
