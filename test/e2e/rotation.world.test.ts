// Does an application that reads its Secret as it is told to notice anything of a rotation?
import OpenAI, { APIError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, startTestStack, type TestStack, whyNoEnvtest } from '../stack.ts';

const ask = { model: 'sample-small', messages: [{ role: 'user' as const, content: 'Say hello.' }] };
const whyNot = whyNoEnvtest();
/** On a real one a few rotations are enough: what differs is who stores the Secret. */
const GROUNDS = [
  { name: 'the embedded API server', args: [], rotations: 4, skip: undefined },
  { name: 'a real API server', args: ['--cluster', 'envtest'], rotations: 2, skip: whyNot },
];

for (const { name, args, rotations, skip } of GROUNDS) {
  describe.skipIf(skip !== undefined)(`on ${name}${skip === undefined ? '' : ` (skipped: ${skip})`}`, () => {
    let stack: TestStack;
    beforeAll(async () => {
      stack = await startTestStack(['--schedule', '1', ...args]);
    });
    afterAll(async () => {
      expect(await stack?.stop()).toBe(0);
    });

    const ok = async (...words: string[]) => {
      const { code, stdout, stderr } = await stack.kubectl(words);
      expect(`${code} ${stderr}`).toMatch(/^0 /);
      return stdout;
    };
    const published = async () => {
      const encoded = await ok('get', 'secret', 'example-service-key', '-o', 'jsonpath={.data.key}');
      return Buffer.from(encoded, 'base64').toString();
    };
    const patch = (change: object) =>
      ok('patch', 'virtualkey', 'example-service', '--type=merge', '-p', JSON.stringify(change));
    const call = async (apiKey: string): Promise<number> => {
      const openai = new OpenAI({ apiKey, baseURL: `${stack.endpoints.gateway}/default/sample`, maxRetries: 0 });
      return openai.chat.completions.create(ask).then(
        () => 200,
        (error: unknown) => (error instanceof APIError ? (error.status ?? 0) : 0),
      );
    };

    test('a client that reads its Secret before each call is answered all through several rotations, and pays from one budget', async () => {
      const first = await published();
      await patch({ spec: { rotation: { every: '3s', overlap: '2s' } } });
      const seen = new Set([first]);
      const answers: number[] = [];
      await eventually(
        async () => {
          const value = await published();
          seen.add(value);
          answers.push(await call(value));
          return seen.size;
        },
        (values) => values > rotations,
        45_000,
      );
      expect(answers.filter((status) => status !== 200)).toEqual([]);
      expect(answers.length).toBeGreaterThan(rotations);
      await patch({ spec: { rotation: null } });
      await fetch(stack.endpoints.reconcile, { method: 'POST' });
      const { currentSpend, keyValue } = JSON.parse(
        await ok('get', 'virtualkey', 'example-service', '-o', 'jsonpath={.status}'),
      );
      expect(keyValue).toBe(await published());
      const sample = Number(currentSpend) / answers.length;
      expect(sample).toBeGreaterThan(0);
      // Every value but the published one is over within its overlap and five seconds.
      for (const value of [...seen].filter((one) => one !== keyValue)) {
        await eventually(
          () => call(value),
          (status) => status === 401,
          10_000,
        );
      }
      expect(await call(keyValue)).toBe(200);
    });

    test('an annotation gives a new value at once; the one before works on, and describe tells until when', async () => {
      const before = await published();
      await ok('annotate', 'virtualkey', 'example-service', 'auth.gateway-operator.dev/rotate=now');
      const after = await eventually(published, (value) => value !== before);
      expect([await call(before), await call(after)]).toEqual([200, 200]);
      const text = await eventually(
        () => ok('describe', 'virtualkey', 'example-service'),
        (said) => said.includes('the one before works until'),
      );
      // The condition says where it stands, the event that it happened and until when the value before works on.
      expect(text).toMatch(/Type:\s+Rotation/);
      expect(text).toMatch(/Message:\s+the key is from \S+; the one before works until \S+; no other is planned/);
      expect(text).toMatch(
        /Normal\s+KeyRotated\s+.*a new key is in Secret "example-service-key": the one before works until \d{4}-/,
      );
      expect(text).not.toContain(before);
      await ok('annotate', 'virtualkey', 'example-service', 'auth.gateway-operator.dev/rotate-', '--overwrite');
      await fetch(stack.endpoints.reconcile, { method: 'POST' });
      expect(await published()).toBe(after);
    });
  });
}
