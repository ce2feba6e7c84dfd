// Do sequences of applies and patches that nobody thought of leave the objects and owners that a real API server leaves?
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Answer,
  startControlPlane,
  type TestControlPlane,
  whyNoControlPlane,
} from '../../../test/control-plane.ts';
import { describeUnless } from '../../../test/skip-unless.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import { createStructural } from '../schema/structural.ts';
import { applyKinds, widgetDefinition, widgetSchema } from './cases/apply.ts';
import { merging } from './cases/merging.ts';
import { mergePatch } from './merge-patch.ts';
import { applyServerSide, conflictMessage, trackUpdate } from './server-side-apply.ts';

const why = whyNoControlPlane();
const { apiVersion, kind, path } = applyKinds.Widget;
const structural = createStructural(widgetSchema);

const text = fc.constantFrom('1', '2');
const some = <T>(record: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(record, { requiredKeys: [] });
const pair = some({ x: text, y: text });
const element = fc.record(
  { name: fc.constantFrom('a', 'b', 'c'), port: fc.constantFrom(80, 81), value: text, more: pair },
  { requiredKeys: ['name', 'port'] },
);
const open = fc.oneof(text, fc.dictionary(fc.constantFrom('m', 'n'), fc.oneof(text, fc.array(text, { maxLength: 2 }))));
const spec = some({
  a: text,
  b: text,
  n: fc.constantFrom(1, 2),
  plain: fc.array(text, { maxLength: 2 }),
  set: fc.uniqueArray(fc.constantFrom('p', 'q', 'r', 's'), { maxLength: 4 }),
  keyed: fc.uniqueArray(element, { maxLength: 3, selector: ({ name, port }) => `${name}${port}` }),
  map: fc.dictionary(fc.constantFrom('k', 'l'), text),
  whole: pair,
  any: fc.dictionary(fc.constantFrom('k', 'l'), open),
  deep: some({ inner: pair }),
});
const labels = fc.dictionary(fc.constantFrom('l', 'm'), text, { minKeys: 1 });
const step = fc.record({
  by: fc.constantFrom('me', 'you', 'zed'),
  verb: fc.constantFrom('apply', 'apply', 'merge'),
  force: fc.boolean(),
  body: fc.record({ spec, metadata: fc.record({ labels }) }, { requiredKeys: ['spec'] }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

describeUnless(why, 'a real API server', () => {
  let server: TestControlPlane;
  let count = 0;
  beforeAll(async () => {
    server = await startControlPlane();
    await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition);
    await merging(server);
  });
  afterAll(() => server?.stop());

  test('random sequences of writes by three managers leave the same', async () => {
    const play = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 6 }), async (steps) => {
      const name = `random-${++count}`;
      let live: JsonObject | undefined;
      for (const one of steps) {
        if (one.verb === 'merge' && live === undefined) continue;
        const answer = await write(one, name);
        // Where an apply empties an object the API server is left with a null that its own schema refuses; here the object goes.
        if (answer.code === 422) return;
        expect(ours(one, live, name)).toEqual(theirs(answer));
        if (answer.code < 300) live = answer.body as JsonObject;
      }
    });
    await fc.assert(play, { numRuns: 80, seed: 20261121 });
  });

  function write({ by, verb, force, body }: Step, name: string): Promise<Answer> {
    const address = `${path}/${name}?fieldManager=${by}`;
    if (verb === 'merge')
      return server.call('PATCH', address, body, { 'content-type': 'application/merge-patch+json' });
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    return server.call('PATCH', `${address}${force ? '&force=true' : ''}`, objectOf(body, name), headers);
  }
});

function objectOf({ metadata, ...body }: JsonObject, name: string): JsonObject {
  return { apiVersion, kind, ...body, metadata: { ...(isObject(metadata) ? metadata : {}), name } };
}

function ours({ by, verb, force, body }: Step, live: JsonObject | undefined, name: string): unknown {
  const write = { manager: by, schema: widgetSchema, time: '2026-11-21T12:00:00Z', ignored: [['status']] };
  if (verb === 'merge') {
    const after = structural.applyDefaults(mergePatch(live ?? {}, body));
    return lasting(trackUpdate({ before: live, after, ...write }));
  }
  const outcome = applyServerSide({ live, applied: objectOf(body, name), force, ...write });
  if (outcome.object) return lasting(outcome.object);
  return linesOf(outcome.conflicts ? conflictMessage(outcome.conflicts) : outcome.invalid);
}

function theirs({ code, body }: Answer): unknown {
  return code < 300 ? lasting(body as JsonObject) : linesOf((body as { message?: string }).message ?? '');
}

/** Conflicts of one manager come in the order of Go's maps. */
function linesOf(message: string): string[] {
  return message.split('\n').sort();
}

/** What is the same on both sides: no clock, no order of managers, no order of members. */
function lasting(object: JsonObject): unknown {
  const { spec, metadata } = structural.applyDefaults(object) as { spec?: unknown; metadata: JsonObject };
  const entries = Array.isArray(metadata.managedFields) ? metadata.managedFields : [];
  const managers = entries.map(({ time: _, ...entry }) => JSON.stringify(ordered(entry))).sort();
  return { spec, labels: metadata.labels, managers };
}

function ordered(value: unknown): unknown {
  if (!isObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, ordered(value[key])]));
}
