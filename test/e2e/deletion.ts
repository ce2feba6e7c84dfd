// Does deletion never stick and never leak silently, with the stock `kubectl`, whatever is deleted first?
import OpenAI, { APIError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, startTestStack, type TestStack } from '../stack.ts';

const ask = { model: 'sample-small', messages: [{ role: 'user' as const, content: 'Say hello.' }] };

/** The same for the embedded and for a real API server. */
export function describeDeletion(name: string, args: ReadonlyArray<string>, skip?: string): void {
  describe.skipIf(skip !== undefined)(skip === undefined ? name : `${name} (skipped: ${skip})`, () => {
    let stack: TestStack;
    beforeAll(async () => {
      stack = await startTestStack(['--schedule', '2', ...args]);
    });
    afterAll(async () => {
      expect(await stack?.stop()).toBe(0);
    });

    const ok = async (...words: string[]) => {
      const { code, stdout, stderr } = await stack.kubectl(words);
      expect(`${code} ${stderr}`).toMatch(/^0 /);
      return stdout;
    };
    const apply = async (...objects: object[]) => {
      const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
      const { code, stderr } = await stack.kubectl(['apply', '-f', '-'], list);
      expect(`${code} ${stderr}`).toMatch(/^0 /);
    };
    const key = (alias: string, namespace = 'default', spec: object = {}) => ({
      apiVersion: 'auth.gateway-operator.dev/v1alpha1',
      kind: 'VirtualKey',
      metadata: { name: alias, namespace },
      spec: {
        keyAlias: alias,
        maxBudget: '1',
        budgetDuration: '30d',
        connectionRef: { instanceRef: { name: 'sample', namespace: 'default' } },
        ...spec,
      },
    });
    const workingValue = (alias: string, namespace = 'default') =>
      eventually(
        async () => {
          const { stdout } = await stack.kubectl([
            'get',
            'vk',
            alias,
            '-n',
            namespace,
            '-o',
            'jsonpath={.status.isActive} {.status.keyValue}',
          ]);
          return stdout;
        },
        (said) => said.startsWith('true sk-'),
      ).then((said) => said.slice('true '.length));
    const call = async (apiKey: string) => {
      const openai = new OpenAI({ apiKey, baseURL: `${stack.endpoints.gateway}/default/sample`, maxRetries: 0 });
      return openai.chat.completions.create(ask).then(
        () => 200,
        (error: unknown) => (error instanceof APIError ? (error.status ?? 0) : 0),
      );
    };
    const refused = (value: string) =>
      eventually(
        () => call(value),
        (status) => status === 401,
        8_000,
      );
    const gone = (...words: string[]) =>
      eventually(
        () => stack.kubectl(['get', ...words]),
        ({ stderr }) => stderr.includes('NotFound'),
        60_000,
      );

    test('a foreground deletion of a key takes its Secret first and then goes; the key stops working', async () => {
      await apply(key('foreground'));
      const value = await workingValue('foreground');
      expect(await call(value)).toBe(200);
      await ok('delete', 'vk', 'foreground', '--cascade=foreground', '--wait=false');
      await gone('vk', 'foreground');
      await gone('secret', 'foreground-key');
      await refused(value);
    });

    test('a foreground deletion of a retained key leaves its Secret, and the key goes on working', async () => {
      await apply(key('kept', 'default', { deletionPolicy: 'Retain' }));
      const value = await workingValue('kept');
      await ok('delete', 'vk', 'kept', '--cascade=foreground', '--wait=false');
      await gone('vk', 'kept');
      expect(await ok('get', 'secret', 'kept-key', '-o', 'name')).toContain('kept-key');
      expect(await call(value)).toBe(200);
      await ok('delete', 'secret', 'kept-key');
      await refused(value);
    });

    test('a key whose finalizer was taken away by hand stops working all the same, after a sweep', async () => {
      await apply(key('byhand'));
      const value = await workingValue('byhand');
      await ok('patch', 'vk', 'byhand', '--type=merge', '-p', '{"metadata":{"finalizers":[]}}');
      await ok('delete', 'vk', 'byhand', '--wait=false');
      await gone('vk', 'byhand');
      await refused(value);
    });

    test('a namespace goes with the keys in it, and nothing is created in it again', async () => {
      await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'going' } }, key('inside', 'going'));
      const value = await workingValue('inside', 'going');
      await ok('delete', 'namespace', 'going', '--wait=false');
      await gone('namespace', 'going');
      await refused(value);
    });

    test('a key whose Secret is gone goes at once', async () => {
      await apply(key('orphan'));
      await workingValue('orphan');
      await ok('delete', 'secret', 'orphan-key');
      await ok('delete', 'vk', 'orphan', '--wait=false');
      await gone('vk', 'orphan');
    });

    test('an instance goes in the foreground with keys left; they stop working within seconds and say why', async () => {
      await apply(key('left'));
      const value = await workingValue('left');
      expect(await call(value)).toBe(200);
      await ok('delete', 'gwi', 'sample', '--cascade=foreground', '--wait=false');
      await gone('gwi', 'sample');
      await eventually(
        () => call(value),
        (status) => status === 401 || status === 404,
        8_000,
      );
      const said = await eventually(
        () =>
          ok('get', 'vk', 'left', '-o', 'jsonpath={.status.isActive} {.status.conditions[?(@.type=="Ready")].reason}'),
        (text) => text === 'false InstanceNotFound',
      );
      expect(said).toBe('false InstanceNotFound');
      await ok('delete', 'vk', 'left', '--wait=false');
      await gone('vk', 'left');
    });
  });
}
