// Does a real API server still apply as the golden file says? `--update` records it anew.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Answer,
  startControlPlane,
  type TestControlPlane,
  whyNoControlPlane,
} from '../../../test/control-plane.ts';
import { describeUnless } from '../../../test/skip-unless.ts';
import type { JsonObject } from '../schema/json.ts';
import { type ApplyCase, applyCases, applyKinds, type Step, type StepAnswer, widgetDefinition } from './cases/apply.ts';
import { merging } from './cases/merging.ts';

const why = whyNoControlPlane();

describeUnless(why, 'a real API server', () => {
  let server: TestControlPlane;
  beforeAll(async () => {
    server = await startControlPlane();
    const created = await server.call(
      'POST',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      widgetDefinition,
    );
    expect(created.code, JSON.stringify(created.body)).toBe(201);
    await merging(server);
  });
  afterAll(() => server?.stop());

  test('applies as recorded', async () => {
    const answers: Record<string, StepAnswer[]> = {};
    for (const [i, one] of applyCases.entries()) answers[one.name] = await answersTo(one, `case-${i}`);
    const lines = Object.entries(answers).map(
      ([name, list]) => `${JSON.stringify(name)}:[\n${list.map((answer) => JSON.stringify(answer)).join(',\n')}\n]`,
    );
    await expect(`{\n${lines.join(',\n')}\n}\n`).toMatchFileSnapshot(
      join(import.meta.dirname, 'cases/apply.golden.json'),
    );
  });

  async function answersTo(one: ApplyCase, name: string): Promise<StepAnswer[]> {
    const answers: StepAnswer[] = [];
    for (const step of one.steps) answers.push(toAnswer(await write(one, step, name), name));
    return answers;
  }

  function write({ of }: ApplyCase, step: Step, name: string): Promise<Answer> {
    const { apiVersion, kind, path } = applyKinds[of];
    const object = (part: JsonObject) => ({
      apiVersion,
      kind,
      ...part,
      metadata: { ...(part.metadata as JsonObject), name },
    });
    const query = `?fieldManager=${step.by}${step.force ? '&force=true' : ''}`;
    const address = `${path}/${name}${step.subresource ? `/${step.subresource}` : ''}${query}`;
    if (step.post) return server.call('POST', `${path}${query}`, object(step.post));
    if (step.merge)
      return server.call('PATCH', address, step.merge, { 'content-type': 'application/merge-patch+json' });
    return server.call('PATCH', address, object(step.apply ?? {}), { 'content-type': 'application/apply-patch+yaml' });
  }
});

function toAnswer({ code, body }: Answer, name: string): StepAnswer {
  if (code < 300) return { code: 200, object: lasting(body as JsonObject) };
  if (code === 422) return { code }; // the kind's own rules, whose causes come in the order of Go's maps: chance
  const { message = '', details } = body as {
    message?: string;
    details?: { causes?: { field: string; message: string }[] };
  };
  const conflicts = details?.causes?.map(({ field, message }) => ({ field, message }));
  const sorted = conflicts?.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  return { code, ...(code === 409 && sorted ? { conflicts: sorted } : {}), message: message.replaceAll(name, 'NAME') };
}

/** The object without what differs from run to run; managers in an order that does not hang on the clock. */
function lasting(object: JsonObject): JsonObject {
  const { managedFields, uid, resourceVersion, creationTimestamp, name, generation, ...metadata } =
    object.metadata as JsonObject;
  const entries = (managedFields ?? []) as JsonObject[];
  const timeless = entries.map(({ time, ...entry }) => entry);
  const sorted = timeless.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  const kept = { ...object, metadata: { ...metadata, ...(sorted.length > 0 ? { managedFields: sorted } : {}) } };
  return JSON.parse(JSON.stringify(kept).replaceAll(String(name), 'NAME'));
}
