// Does server-side apply do what a real API server does? The golden file is its answers (server-side-apply.world.test.ts).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject } from '../schema/json.ts';
import { createStructural } from '../schema/structural.ts';
import { type ApplyCase, applyCases, applyKinds, type Step, type StepAnswer, widgetSchema } from './cases/apply.ts';
import { coreSchema } from './core-kinds.ts';
import { mergePatch } from './merge-patch.ts';
import { applyServerSide, conflictMessage, trackUpdate } from './server-side-apply.ts';

const golden: Record<string, StepAnswer[]> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'cases/apply.golden.json'), 'utf8'),
);
const structural = createStructural(widgetSchema);
const time = '2026-11-21T12:00:00Z';

describe.each(applyCases)('$name', (one) => {
  const answers = golden[one.name] ?? [];

  test.each(one.steps.map((step, i) => ({ i, by: step.by, step })))('step $i by $by', ({ i, step }) => {
    const answer = answers[i];
    if (answer === undefined) throw new Error('not recorded');
    const live = answers.slice(0, i).findLast(({ object }) => object)?.object;
    if (answer.code === 422) return; // refused by the kind's own rules, after the merge
    expect(answerTo(one, step, live && withUid(live))).toEqual(comparable(one, answer));
  });
});

function answerTo(one: ApplyCase, step: Step, live: JsonObject | undefined): StepAnswer {
  const { apiVersion, kind } = applyKinds[one.of];
  const object = (part: JsonObject) => ({
    apiVersion,
    kind,
    ...part,
    metadata: { ...(part.metadata as JsonObject), name: 'NAME', ...(live ? {} : { namespace: 'default' }) },
  });
  const schema = one.of === 'Widget' ? widgetSchema : coreSchema(apiVersion, kind);
  const ignored = one.of === 'ConfigMap' ? [] : step.subresource ? [['spec']] : [['status']];
  const write = {
    manager: step.by,
    schema,
    time,
    ignored,
    ...(step.subresource ? { subresource: step.subresource } : {}),
  };
  if (step.apply === undefined) {
    const after = step.post ? object(step.post) : mergePatch(live ?? {}, step.merge ?? {});
    const decoded = one.of === 'Widget' ? structural.applyDefaults(after) : after;
    return comparable(one, {
      code: 200,
      object: trackUpdate({ before: live, after: written(decoded, live, step), ...write }),
    });
  }
  const outcome = applyServerSide({ live, applied: object(step.apply), force: step.force === true, ...write });
  if (outcome.object) return comparable(one, { code: 200, object: written(outcome.object, live, step) });
  if (outcome.invalid !== undefined) return comparable(one, { code: 500, message: outcome.invalid });
  const conflicts = outcome.conflicts?.map(({ field, message }) => ({ field, message })) ?? [];
  return comparable(one, { code: 409, conflicts, message: conflictMessage(outcome.conflicts ?? []) });
}

/** What the API server does beside the merge: the status belongs to its subresource, and that writes nothing but labels' owners. */
function written(object: JsonObject, live: JsonObject | undefined, { subresource }: Step): JsonObject {
  if (subresource === undefined)
    return live?.status === undefined ? without(object, 'status') : { ...object, status: live.status };
  const { managedFields } = object.metadata as JsonObject;
  return {
    ...object,
    spec: live?.spec,
    metadata: {
      ...(live?.metadata as JsonObject),
      managedFields: managedFields ?? (object.metadata as JsonObject).managedFields,
    },
  };
}

function without(object: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}

function withUid(object: JsonObject): JsonObject {
  return { ...object, metadata: { ...(object.metadata as JsonObject), uid: 'u' } };
}

/** Times decide the order of managers, chance that of conflicts, and a core kind's defaults are its own. */
function comparable({ of }: ApplyCase, { code, object, conflicts, message }: StepAnswer): StepAnswer {
  const sorted = <T>(list: readonly T[]) => [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (!object) {
    const words = message?.replace(/^failed to create typed patch object \(.*?\): /, '').replace(/, got .*/, '');
    return { code, ...(conflicts ? { conflicts: sorted(conflicts) } : {}), message: words ?? '' };
  }
  const whole = of === 'Widget' ? structural.applyDefaults(structural.prune(object).object) : object;
  const { managedFields, uid, name, ...metadata } = whole.metadata as JsonObject;
  const managers = (Array.isArray(managedFields) ? managedFields : []).map((entry) => without(entry, 'time'));
  const body = of === 'Widget' || of === 'ConfigMap' ? without(without(whole, 'metadata'), 'status') : {};
  return { code: 200, object: { ...body, metadata: { ...metadata, managedFields: sorted(managers.map(ordered)) } } };
}

function ordered(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, ordered(value[key])]),
  );
}

describe('times', () => {
  const schema = coreSchema('v1', 'ConfigMap');
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { x: '1' } };
  const apply = (live: JsonObject | undefined, manager: string, minute: string) => {
    const outcome = applyServerSide({
      live,
      applied: config,
      manager,
      force: false,
      schema,
      time: `2026-11-21T12:${minute}:00Z`,
    });
    if (!outcome.object) throw new Error('no object');
    return withUid(outcome.object);
  };
  const timesOf = ({ metadata }: JsonObject) =>
    ((metadata as JsonObject).managedFields as JsonObject[]).map(({ manager, time }) => [manager, time]);

  test('an apply that changes nothing returns the live object itself', () => {
    const live = apply(undefined, 'me', '00');
    expect(
      applyServerSide({ live, applied: config, manager: 'me', force: false, schema, time: '2026-11-21T12:01:00Z' })
        .object,
    ).toBe(live);
  });

  test('a manager that only shares what is there has no time', () => {
    expect(timesOf(apply(apply(undefined, 'me', '00'), 'you', '01'))).toEqual([
      ['you', undefined],
      ['me', '2026-11-21T12:00:00Z'],
    ]);
  });

  test('an update that writes what is there already leaves its managers alone', () => {
    const live = apply(undefined, 'me', '00');
    const after = trackUpdate({ before: live, after: live, manager: 'edit', schema, time: '2026-11-21T12:01:00Z' });
    expect(after).toEqual(live);
  });
});
