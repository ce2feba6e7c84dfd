// Does admission's hint reach reconcile soon, and again only where there was nothing to see yet?
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { webhookConfigurations } from '../manifests/webhooks.ts';
import { createHint } from './hint.ts';

const HINT = { apiVersion: 'a/v1', kind: 'VirtualKey', namespace: 'default', name: 'chat' };
let sent: Array<{ readonly at: number; readonly event: Request }>;
let answers: Response[];
beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
});
afterEach(() => {
  vi.useRealTimers();
});
const tell = async () => {
  const started = Date.now();
  const hint = createHint('http://reconcile/', async (event) => {
    sent.push({ at: Date.now() - started, event });
    return answers.shift() ?? new Response('{}');
  });
  const told = hint(HINT).then(
    () => 'told',
    (error: Error) => error.message,
  );
  await vi.runAllTimersAsync();
  return told;
};
const report = (actions: object) => new Response(JSON.stringify({ observed: {}, actions, failed: {} }));

test('reconcile is asked to look well within a second', async () => {
  answers = [report({ CreateSecret: 1 })];
  expect(await tell()).toBe('told');
  expect(sent.map(({ at }) => at)).toEqual([250]);
  expect(await sent[0]?.event.json()).toEqual(HINT);
  expect(sent[0]?.event.headers.get('ce-type')).toBe('dev.gateway-operator.hint');
});

test('where there was nothing to do the object may not have been stored yet: it looks once more, two seconds after the answer', async () => {
  answers = [report({}), report({})];
  expect(await tell()).toBe('told');
  expect(sent.map(({ at }) => at)).toEqual([250, 2000]);
});

test('an answer that is no report is looked behind once more, and a refusal is told', async () => {
  answers = [new Response('<html>'), new Response('no', { status: 503 })];
  expect(await tell()).toBe('reconcile answered 503: no');
});

test('deletions are heard of by an entry of their own, which can hold up nobody', () => {
  const target = { type: 'url', base: 'https://admission.example.com/x' } as const;
  const ownUser = 'system:serviceaccount:gateway-operator:reconcile';
  const [, validating] = webhookConfigurations({ target, ownUser, deletions: true });
  const entries = validating?.webhooks as ReadonlyArray<Record<string, unknown>>;
  expect(entries.map(({ name }) => name)).toEqual(['validate.gateway-operator.dev', 'deleted.gateway-operator.dev']);
  expect(entries[1]).toMatchObject({ failurePolicy: 'Ignore', timeoutSeconds: 1, sideEffects: 'NoneOnDryRun' });
  expect(entries[1]?.rules).toEqual([
    expect.objectContaining({ operations: ['DELETE'], resources: ['gatewayinstances'] }),
    expect.objectContaining({ operations: ['DELETE'], resources: ['virtualkeys', 'users', 'teams'] }),
  ]);
  // The object of a deletion is null: a condition that reads it would fail.
  expect(entries[1]?.matchConditions).toEqual([{ name: 'not-our-own', expression: expect.stringContaining(ownUser) }]);
  const [, quiet] = webhookConfigurations({ target, ownUser });
  expect(quiet?.webhooks).toHaveLength(1);
});
