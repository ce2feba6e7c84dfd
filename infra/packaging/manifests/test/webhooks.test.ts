// Which reviews does the API server send us, and what happens when nobody answers?
import { expect, test } from 'vitest';
import { kinds } from '#crds/kinds/kinds.ts';
import { IN_CLUSTER, toWebhookOptions, type WebhookOptions, webhookConfigurations } from '../webhooks.ts';

interface Webhook {
  readonly rules: ReadonlyArray<{ apiGroups: string[]; operations: string[]; resources: string[]; scope: string }>;
  readonly matchConditions: ReadonlyArray<{ name: string; expression: string }>;
  readonly clientConfig: unknown;
}
const webhooksOf = (options: WebhookOptions) =>
  webhookConfigurations(options).map(({ webhooks }) => (webhooks as ReadonlyArray<Webhook>)[0] as Webhook);

test('only of our kinds, on create and update, and of no subresource', () => {
  for (const { rules } of webhooksOf(IN_CLUSTER)) {
    expect(
      rules.flatMap(({ apiGroups, resources }) => resources.map((name) => `${name}.${apiGroups.join()}`)).sort(),
    ).toEqual(kinds.map(({ plural, group }) => `${plural}.${group}`).sort());
    for (const { operations, scope } of rules)
      expect([operations, scope]).toEqual([['CREATE', 'UPDATE'], 'Namespaced']);
  }
});

test('not of stored objects that are being deleted, and not what reconcile writes itself', () => {
  for (const { matchConditions } of webhooksOf(IN_CLUSTER)) {
    expect(matchConditions.map(({ expression }) => expression)).toEqual([
      "request.operation == 'CREATE' || !has(object.metadata.deletionTimestamp)",
      "request.userInfo.username != 'system:serviceaccount:gateway-operator:reconcile'",
    ]);
  }
});

test('they are answered in five seconds, change nothing on a dry run, and nothing gets in unjudged unless asked for', () => {
  const common = {
    timeoutSeconds: 5,
    sideEffects: 'NoneOnDryRun',
    matchPolicy: 'Equivalent',
    admissionReviewVersions: ['v1'],
  };
  for (const webhook of webhooksOf(IN_CLUSTER)) expect(webhook).toMatchObject({ ...common, failurePolicy: 'Fail' });
  for (const webhook of webhooksOf({ ...IN_CLUSTER, failurePolicy: 'Ignore' }))
    expect(webhook).toMatchObject({ ...common, failurePolicy: 'Ignore' });
});

test('the command line makes them for an address or for the cluster, with either policy', () => {
  const options = toWebhookOptions(['--url', 'https://host/segment/', '--failure-policy', 'Ignore']);
  expect(webhooksOf(options as WebhookOptions)).toMatchObject([
    { clientConfig: { url: 'https://host/segment/mutate' }, failurePolicy: 'Ignore' },
    { clientConfig: { url: 'https://host/segment/validate' }, failurePolicy: 'Ignore' },
  ]);
  expect(toWebhookOptions(['--in-cluster'])).toEqual({ ...IN_CLUSTER, failurePolicy: 'Fail' });
  for (const args of [[], ['--url'], ['--in-cluster', '--failure-policy', 'ignore'], ['--in-cluster', 'more']])
    expect(toWebhookOptions(args)).toMatch(/^usage: /);
});

test.each([
  ['http://host/segment', 'the API server calls webhooks over https only'],
  ['host/segment', 'must be an address'],
  ['https://host', 'must end with one path segment'],
  ['https://host//', 'must end with one path segment'],
  ['https://host/segment/validate', 'must end with one path segment'],
  ['https://host/segment?timeout=1s', 'must end after the segment'],
  ['https://host/segment#here', 'must end after the segment'],
  ['https://someone@host/segment', 'must end after the segment'],
  ['https://host/SEGMENT', 'in place of SEGMENT'],
])('an address that the API server could not call is refused with its reason: %s', (url, reason) => {
  expect(toWebhookOptions(['--url', url])).toContain(reason);
});

test('deletions are heard of by an entry of their own, which can hold up nobody', () => {
  const base = 'https://admission.example.com/x';
  const ownUser = 'system:serviceaccount:gateway-operator:reconcile';
  const [, validating] = webhookConfigurations({ base, ownUser });
  const entries = validating?.webhooks as ReadonlyArray<Record<string, unknown>>;
  expect(entries.map(({ name }) => name)).toEqual(['validate.gateway-operator.dev', 'deleted.gateway-operator.dev']);
  expect(entries[1]).toMatchObject({ failurePolicy: 'Ignore', timeoutSeconds: 1, sideEffects: 'NoneOnDryRun' });
  expect(entries[1]?.rules).toEqual([
    expect.objectContaining({ operations: ['DELETE'], resources: ['gatewayinstances'] }),
    expect.objectContaining({ operations: ['DELETE'], resources: ['virtualkeys', 'users', 'teams'] }),
  ]);
  // The object of a deletion is null: a condition that reads it would fail.
  expect(entries[1]?.matchConditions).toEqual([{ name: 'not-our-own', expression: expect.stringContaining(ownUser) }]);
});
