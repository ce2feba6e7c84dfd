// Rotation as seen by an application that reads its Secret before each call.
import { expect, test } from 'vitest';
import { parseMoney } from '#core/money/money.ts';
import { eventually } from '../support/eventually.ts';
import { answerTo, type TestStack } from '../support/stack.ts';

const ROTATIONS = 2;

export function describeRotation(stack: () => TestStack): void {
  const published = async () => {
    const encoded = await stack().ok('get', 'secret', 'example-service-key', '-o', 'jsonpath={.data.key}');
    return Buffer.from(encoded, 'base64').toString();
  };
  const patch = (change: object) =>
    stack().ok('patch', 'virtualkey', 'example-service', '--type=merge', '-p', JSON.stringify(change));
  const spend = async () => {
    await stack().resync();
    return parseMoney(
      await stack().ok('get', 'virtualkey', 'example-service', '-o', 'jsonpath={.status.currentSpend}'),
    );
  };
  const call = async (apiKey: string) => answerTo(await stack().client(apiKey));

  test('a client that reads its Secret before each call is answered throughout several rotations, and pays from one budget', async () => {
    const first = await published();
    const before = (await spend()) ?? 0n;
    expect(await call(first)).toBe('200');
    const cost = ((await spend()) ?? 0n) - before;
    expect(cost).toBeGreaterThan(0n);
    await patch({ spec: { rotation: { every: '3s', overlap: '2s' } } });
    const seen = new Set([first]);
    const answers: string[] = [];
    await eventually(
      async () => {
        const value = await published();
        seen.add(value);
        answers.push(await call(value));
        return seen.size;
      },
      (values) => values > ROTATIONS,
      45_000,
    );
    expect(answers.filter((answer) => answer !== '200')).toEqual([]);
    expect(answers.length).toBeGreaterThan(ROTATIONS);
    await patch({ spec: { rotation: null } });
    expect(await spend()).toBe(before + cost * BigInt(1 + answers.length));
    const keyValue = await published();
    // Every value but the published one stops working within its overlap and five seconds.
    for (const value of [...seen].filter((one) => one !== keyValue)) {
      await eventually(
        () => call(value),
        (answer) => answer.startsWith('401'),
        10_000,
      );
    }
    expect(await call(keyValue)).toBe('200');
  });

  test('an annotation makes a new value immediately; the earlier one still works, and describe says until when', async () => {
    const before = await published();
    await stack().ok('annotate', 'virtualkey', 'example-service', 'auth.gateway-operator.dev/rotate=now');
    const after = await eventually(published, (value) => value !== before);
    expect([await call(before), await call(after)]).toEqual(['200', '200']);
    const text = await eventually(
      () => stack().ok('describe', 'virtualkey', 'example-service'),
      (text) => text.includes('the previous one works until'),
    );
    // The condition shows the state; the event shows the rotation and how long the earlier value works.
    expect(text).toMatch(/Type:\s+Rotation/);
    expect(text).toMatch(
      /Message:\s+the current value was created at \S+; the previous one works until \S+; no rotation is planned/,
    );
    expect(text).toMatch(
      /Normal\s+KeyRotated\s+.*Secret "example-service-key" has a new key value; the previous one works until \d{4}-/,
    );
    expect(text).not.toContain(before);
    await stack().ok('annotate', 'virtualkey', 'example-service', 'auth.gateway-operator.dev/rotate-', '--overwrite');
    await stack().resync();
    expect(await published()).toBe(after);
  });
}
