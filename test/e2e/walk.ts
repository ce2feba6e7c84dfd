// The walk of the README as tests: every operation with the stock `kubectl`, and calls with an unmodified client.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CATEGORY } from '#crds/names/group.ts';
import { eventually } from '../support/eventually.ts';
import { ASK, answerTo, type TestStack } from '../support/stack.ts';

const KEY = ['get', 'virtualkey', 'example-service', '-o'] as const;

/** On a stack with the sample. */
export function describeWalk(stack: () => TestStack): void {
  const ok = (...words: string[]) => stack().ok(...words);
  const status = async () => JSON.parse(await ok(...KEY, 'json')).status;
  const keyValue = async () => {
    const secret = await ok(...KEY, 'jsonpath={.status.keySecretRef}');
    const encoded = await ok('get', 'secret', secret, '-o', 'jsonpath={.data.key}');
    return Buffer.from(encoded, 'base64').toString();
  };
  const client = async () => stack().client(await keyValue());

  test('the start prints a paid reply, and a block to copy from', () => {
    expect(stack().printed()).toMatch(/reply\s+\S/);
    expect(stack().printed()).toMatch(/this call cost \$0\.0/);
    expect(stack().printed()).toContain(`export KUBECONFIG=${stack().endpoints.kubeconfig}`);
  });

  test('applying the sample again says unchanged, object by object', async () => {
    const output = await ok('apply', '-f', join(stack().folder, 'sample.yaml'));
    expect(
      output
        .trim()
        .split('\n')
        .filter((line) => !line.endsWith(' unchanged')),
    ).toEqual([]);
  });

  test('the List that `kubectl get` prints can be applied again', async () => {
    const printed = await ok('get', 'gwteam', '-o', 'yaml');
    const { code, stdout } = await stack().kubectl(['apply', '-f', '-'], printed);
    expect(`${code} ${stdout}`).toMatch(/^0 team\.auth\.gateway-operator\.dev\/research (configured|unchanged)\n$/);
  });

  test('instances and keys are listed with their columns and readiness', async () => {
    const instances = await ok('get', 'gwi');
    expect(instances).toMatch(/^NAME\s+URL\s+READY/);
    expect(instances).toMatch(/sample\s+http:\S+\/default\/sample\s+True/);
    expect(await ok('get', 'virtualkeys')).toMatch(/example-service\s+example-service\s+True/);
    const all = await ok('get', CATEGORY, '-A');
    for (const one of ['gatewayinstance', 'virtualkey', 'user', 'team']) expect(all).toContain(`${one}.`);
  });

  test('one key is described, with its events', async () => {
    const text = await ok('describe', 'virtualkey', 'example-service');
    expect(text).toContain('Key Alias:');
    expect(text).toContain('KeyCreated');
  });

  test('all five status fields are true', async () => {
    const value = await keyValue();
    const { keySecretRef, keyValue: shown, currentSpend, isActive, expiryDate } = await status();
    expect({ keySecretRef, shown, isActive, expiryDate }).toEqual({
      keySecretRef: 'example-service-key',
      shown: value,
      isActive: true,
      expiryDate: undefined,
    });
    expect(currentSpend).toMatch(/^0\.0000/);
    expect(value).toMatch(/^sk-[0-9A-Za-z]{49}$/);
  });

  test('the openai client gets a reply, and its cost is in currentSpend after the next resync', async () => {
    const before = (await status()).currentSpend;
    const reply = await (await client()).chat.completions.create(ASK);
    expect(reply.choices[0]?.message.content).toMatch(/\S/);
    await stack().resync();
    expect(Number((await status()).currentSpend)).toBeGreaterThan(Number(before));
  });

  test('the openai client streams, with usage when it asks for it and without when it does not', async () => {
    const openai = await client();
    const plain = await openai.chat.completions.create({ ...ASK, stream: true });
    let text = '';
    let usages = 0;
    for await (const chunk of plain) {
      text += chunk.choices[0]?.delta.content ?? '';
      usages += chunk.usage ? 1 : 0;
    }
    expect(text).toMatch(/\S/);
    expect(usages).toBe(0);
    const asked = await openai.chat.completions.create({
      ...ASK,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of asked) usages += chunk.usage ? 1 : 0;
    expect(usages).toBe(1);
  });

  test('a failing entry is skipped for the next one of its name', async () => {
    const openai = await client();
    for (let turn = 0; turn < 4; turn += 1) {
      const reply = await openai.chat.completions.create({ ...ASK, model: 'sample-failover' });
      expect(reply.choices[0]?.message.content).toMatch(/\S/);
    }
  });

  test('a merge patch of maxBudget is in force within five seconds, both ways', async () => {
    const openai = await client();
    await ok('patch', 'virtualkey', 'example-service', '--type=merge', '-p', '{"spec":{"maxBudget":"0.000000001"}}');
    await eventually(
      () => answerTo(openai),
      (seen) => seen === '429 budget_exceeded',
    );
    await eventually(status, ({ isActive }) => isActive === false);
    expect(await ok('get', 'virtualkey', 'example-service')).toMatch(/False/);
    await ok('patch', 'virtualkey', 'example-service', '--type=merge', '-p', '{"spec":{"maxBudget":"10"}}');
    await eventually(
      () => answerTo(openai),
      (seen) => seen === '200',
    );
  });

  test("a user's key is made, works, and follows the user", async () => {
    const user = JSON.parse(await ok('get', 'gwuser', 'alice', '-o', 'json'));
    expect(user.status.keyRef).toEqual({ name: 'alice' });
    const made = JSON.parse(await ok('get', 'vk', 'alice', '-o', 'json'));
    expect(made.spec).toMatchObject({
      keyAlias: 'alice',
      models: ['sample-small'],
      maxBudget: '25',
      budgetDuration: '30d',
    });
    await ok('patch', 'gwuser', 'alice', '--type=merge', '-p', '{"spec":{"maxBudget":"26"}}');
    await eventually(
      async () => JSON.parse(await ok('get', 'vk', 'alice', '-o', 'json')).spec.maxBudget,
      (seen) => seen === '26',
    );
  });

  test("reconcile's own writes bypass admission, as on every platform", async () => {
    const lines = readFileSync(join(stack().folder, 'stack.log'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const reviewed = lines.filter(({ message }) => message === 'admission').map(({ kind, name }) => `${kind}/${name}`);
    // A person writes the User; reconcile makes and edits the key of the same name.
    expect(reviewed).toContain('User/alice');
    expect(reviewed).not.toContain('VirtualKey/alice');
    const user = JSON.parse(await ok('get', 'gwuser', 'alice', '-o', 'json'));
    const made = JSON.parse(await ok('get', 'vk', 'alice', '-o', 'json'));
    expect(made.metadata.annotations['gateway-operator.dev/requested-by']).toMatch(/-admin$/);
    expect(made.metadata.annotations['gateway-operator.dev/requested-by']).toBe(
      user.metadata.annotations['gateway-operator.dev/requested-by'],
    );
  });

  test('an invalid object is refused with the field, the value, the rule and what to do', async () => {
    const bad = readFileSync(join(stack().folder, 'sample.yaml'), 'utf8')
      .split('\n---\n')
      .at(-1)
      ?.replaceAll('example-service', 'bad')
      .replace('sample-failover]', 'sample-smal]');
    const { code, stderr } = await stack().kubectl(['apply', '-f', '-'], bad);
    expect(code).toBe(1);
    expect(stderr).toContain('spec.models[1]: Not found: "sample-smal"');
    expect(stderr).toContain('"sample-small"');
  });

  test('a resync over unchanged objects plans nothing and writes nothing', async () => {
    await stack().resync();
    const versions = () =>
      ok('get', `${CATEGORY},secrets,configmaps`, '-o', 'jsonpath={.items[*].metadata.resourceVersion}');
    const before = await versions();
    const plan = await fetch(`${stack().endpoints.reconcile}?dry-run=true`, { method: 'POST' });
    expect(await plan.json()).toEqual({ plan: [] });
    await stack().resync();
    expect(await versions()).toBe(before);
  });

  test('no key and no password of any Secret is in what the stack prints and logs, in events, conditions, snapshots or plans', async () => {
    // The keys of a service and of a user, the database's password, the provider's key.
    expect(stack().secretValues.size).toBeGreaterThanOrEqual(4);
    expect(await stack().shown()).toEqual([]);
  });

  test('a deleted key stops working within five seconds, and its Secret goes with it', async () => {
    const openai = await client();
    await ok('delete', 'virtualkey', 'example-service');
    await eventually(
      () => answerTo(openai),
      (seen) => seen === '401 invalid_api_key',
      10_000,
    );
    expect((await stack().kubectl(['get', 'secret', 'example-service-key'])).stderr).toContain('NotFound');
  });

  test('all resources of the file are removed, in any order', async () => {
    await ok('delete', '--ignore-not-found', '-f', join(stack().folder, 'sample.yaml'));
    expect(await ok('get', CATEGORY, '-A')).toBe('');
  });
}
