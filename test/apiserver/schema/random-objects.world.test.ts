// Random objects: validated as a real API server validates them.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import { prune } from '../../../infra/apiserver/schema/prune.ts';
import { createStructural } from '../../../infra/apiserver/schema/structural.ts';
import {
  type Answer,
  startControlPlane,
  type TestControlPlane,
  whyNoControlPlane,
} from '../../support/control-plane.ts';
import { eventually } from '../../support/eventually.ts';
import { runs } from '../../support/runs.ts';
import { describeUnless } from '../../support/skip-unless.ts';
import { bounds } from './bounds.ts';
import { objectOf, sample } from './case.ts';

const why = whyNoControlPlane();
const { group, version, kind, plural } = sample;
const folder = `/apis/${group}/${version}/namespaces/default/${plural}`;
const structural = createStructural(bounds.schema);

const leaf = fc.oneof(
  fc.string({ maxLength: 6 }),
  fc.constantFrom('a', 'b', '12', '1h', '2024-01-01T00:00:00Z', '10.0.0.1', '::1', '/a', '', 'ä', '🙂'),
  fc.integer({ min: -5, max: 20 }),
  fc.constantFrom(0.5, -1, 2147483648, 1e15),
  fc.boolean(),
  fc.constant(null),
);
const names = [
  'a',
  'b',
  'name',
  'port',
  'value',
  'known',
  'kind',
  'depth',
  'apiVersion',
  'metadata',
  '__proto__',
  'constructor',
];
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 4 }),
  ),
}));
// What is no text where a text of a known format should be, has words of its own there: `must be of type date:
// "int64"`.
const unformatted = Object.entries(bounds.schema.properties?.spec?.properties ?? {})
  .filter(([name, { format }]) => format === undefined && name !== 'half')
  .map(([name]) => name);
const shaped = fc.oneof(
  fc.record({
    map: fc.array(fc.record({ name: leaf, port: leaf, value: leaf }, { requiredKeys: [] }), { maxLength: 3 }),
  }),
  fc.record({ set: fc.array(leaf, { maxLength: 4 }) }),
  fc.record({ mode: fc.record({ kind: leaf, depth: leaf, x: leaf }, { requiredKeys: [] }) }),
  fc.constant({}),
);
const specs = fc
  .tuple(fc.dictionary(fc.constantFrom(...unformatted), fc.oneof(leaf, value), { maxKeys: 3 }), shaped)
  .map(([some, more]) => ({ must: 'x', ...some, ...more }));

describeUnless(why, 'a real API server', () => {
  let server: TestControlPlane;
  beforeAll(async () => {
    server = await startControlPlane();
    const names = { kind, plural, singular: 'sample', listKind: `${kind}List` };
    const versions = [{ name: version, served: true, storage: true, schema: { openAPIV3Schema: bounds.schema } }];
    const made = await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: { group, scope: 'Namespaced', names, versions },
    });
    expect(made.code, JSON.stringify(made.body)).toBe(201);
    await eventually(
      () => server.call('GET', folder),
      ({ code }) => code === 200,
    );
  });
  afterAll(() => server?.stop());

  test('random objects are judged, pruned and defaulted alike', async () => {
    const sameVerdict = fc.asyncProperty(specs, async (spec) => {
      const object = objectOf({ name: 'random', spec });
      const answer = await server.call('POST', `${folder}?dryRun=All&fieldValidation=Warn`, object);
      if (answer.code !== 400) expect(ours(object)).toEqual(theirs(answer));
    });
    await fc.assert(sameVerdict, { numRuns: runs(400), seed: 20261121 });
  });
});

type SchemaVerdict = {
  readonly unknown: readonly string[];
  readonly causes: readonly string[];
  readonly stored: unknown;
};

function ours(object: JsonObject): SchemaVerdict {
  const { object: pruned, unknown } = prune(bounds.schema, object);
  const stored = structural.applyDefaults(pruned);
  const causes = structural
    .validate(stored)
    .causes.map(({ field, reason, message }) => `${field} ${reason} ${message}`);
  return {
    unknown: [...unknown].sort(),
    causes: distinct(causes),
    stored: causes.length > 0 ? undefined : stored.spec,
  };
}

function theirs({ code, body, warnings }: Answer): SchemaVerdict {
  const { spec, details } = body as {
    spec?: unknown;
    details?: { causes?: { field: string; reason: string; message: string }[] };
  };
  const causes = (details?.causes ?? []).map(({ field, reason, message }) => `${field} ${reason} ${message}`);
  const unknown = warnings.flatMap((warning) => /^unknown field "(.*)"$/s.exec(warning)?.[1] ?? []).sort();
  return { unknown, causes: distinct(causes), stored: code < 300 ? spec : undefined };
}

/** Go's maps have no order, and an alternative's cause may be said twice. */
function distinct(causes: readonly string[]): string[] {
  return [...new Set(causes)].sort();
}
