// What is told of a review after its answer?
import { expect, test } from 'vitest';
import type { ReviewRecord, Trigger } from '../../../../functions/admission/app.ts';
import { ADA, ask, createWorld, depsOf, objectOf, requestOf } from '../../../../test/admission/fixtures.ts';
import { checkLabels } from '../../../../test/support/metric-labels.ts';
import { createReviewRecord, type RecordDependencies } from '../review-record.ts';

const { cluster } = await createWorld();
const bad = objectOf('VirtualKey', { ...(objectOf('VirtualKey').spec as object), maxBudget: 'ten' });

/** Lines and counts of one review. */
async function recordOf(object: object, more: Record<string, unknown>, trigger?: RecordDependencies['trigger']) {
  const lines: unknown[] = [];
  const counts: string[] = [];
  const to = (level: string) => (message: string, fields?: object) => void lines.push({ level, message, ...fields });
  const log = { info: to('info'), warn: to('warn'), error: to('error') };
  const add = (name: string, labels: Readonly<Record<string, string>> = {}) => {
    checkLabels(name, labels);
    counts.push(`${name} ${Object.values(labels).join(' ')}`);
  };
  const metrics = { add, set: () => {}, observe: () => {}, render: () => '' };
  const record = createReviewRecord({ log, metrics, trigger });
  let recorded = Promise.resolve();
  const remember = (review: ReviewRecord) => {
    recorded = record(review);
    return recorded;
  };
  await ask(depsOf(cluster, { record: remember }), '/validate', requestOf(object as typeof bad, more));
  await recorded;
  return { lines, counts };
}

test('one line a review says who asked for what and why not, and never the object', async () => {
  const { lines, counts } = await recordOf(bad, { userInfo: { ...ADA, extra: { 'scopes.example.com': ['a'] } } });
  expect(lines).toEqual([
    expect.objectContaining({
      level: 'info',
      message: 'admission',
      verb: 'validate',
      kind: 'VirtualKey',
      name: 'billing',
      user: 'ada',
      allowed: false,
      rules: ['Malformed'],
    }),
  ]);
  expect(JSON.stringify(lines)).not.toContain('ten');
  expect(counts).toEqual([
    'gateway_operator_admission_reviews_total validate VirtualKey refused',
    'gateway_operator_admission_refusals_total Malformed',
  ]);
});

test('reconcile is told where to look, and a trigger that is lost is a line', async () => {
  const triggers: Trigger[] = [];
  await recordOf(objectOf('VirtualKey'), {}, async (trigger) => void triggers.push(trigger));
  expect(triggers).toEqual([
    { apiVersion: 'auth.gateway-operator.dev/v1alpha1', kind: 'VirtualKey', namespace: 'team-a', name: 'billing' },
  ]);
  const { lines } = await recordOf(objectOf('VirtualKey'), {}, () => Promise.reject(new Error('no sink')));
  expect(lines).toEqual([
    expect.objectContaining({ level: 'info', message: 'admission' }),
    { level: 'warn', message: 'cannot send a trigger; the next resync finds the change', error: 'Error: no sink' },
  ]);
});
