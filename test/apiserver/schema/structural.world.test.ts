// A real API server validates as the golden files say; `--update` records them anew.
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import type { Schema } from '../../../infra/apiserver/schema/schema.ts';
import { whyNoControlPlane } from '../../support/control-plane.ts';
import { eventually } from '../../support/eventually.ts';
import { type SharedControlPlane, sharedControlPlane } from '../../support/shared-servers.ts';
import { describeUnless } from '../../support/skip-unless.ts';
import { bounds } from './bounds.ts';
import { type Answer, objectOf, type SchemaCase, sample } from './case.ts';
import { ratcheting } from './ratcheting.ts';
import { rules } from './rules.ts';

const why = whyNoControlPlane();
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const crdName = `${sample.plural}.${sample.group}`;
const folder = `/apis/${sample.group}/${sample.version}/namespaces/default/${sample.plural}`;

describeUnless(why, 'a real API server', () => {
  let server: SharedControlPlane;
  let defined = 0;
  beforeAll(async () => {
    server = await sharedControlPlane();
  });

  test.each([bounds, rules, ratcheting])('validates $name as recorded', async (table) => {
    const names = table.cases.map((_, i) => `old-${i}`);
    if (table.cases.some(({ old }) => old !== undefined)) {
      await define(table.loose ?? table.schema);
      for (const [i, one] of table.cases.entries()) {
        if (one.old === undefined) continue;
        const stored = await server.call('POST', folder, named(objectOf(one, one.old), names[i]));
        expect(stored.code, JSON.stringify(stored.body)).toBe(201);
      }
    }
    await define(table.schema);
    const answers: Record<string, Answer> = {};
    for (const [i, one] of table.cases.entries()) answers[one.name] = await answer(one, names[i] ?? '');
    await server.call('DELETE', folder);
    await expect(`${JSON.stringify(answers, null, 1)}\n`).toMatchFileSnapshot(
      join(import.meta.dirname, `${table.name}.golden.json`),
    );
  });

  /** Puts the schema in force; the API server takes a moment to validate by it. */
  async function define(schema: Schema): Promise<void> {
    defined += 1;
    const column = `Defined ${defined}`;
    const crd = definition(schema, column);
    const current = await server.call('GET', `${definitions}/${crdName}`);
    const { metadata } = current.body as { metadata: JsonObject };
    const written =
      current.code === 404
        ? await server.call('POST', definitions, crd)
        : await server.call('PUT', `${definitions}/${crdName}`, { ...crd, metadata });
    expect(written.code, JSON.stringify(written.body)).toBeLessThan(300);
    await eventually(columns, (names) => names.includes(column));
  }

  /** The schema that it shows is as old as the one that it validates by: both are made again with the definition. */
  async function columns(): Promise<ReadonlyArray<string>> {
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const { body } = await server.call('GET', folder, undefined, { accept });
    const { columnDefinitions = [] } = body as { columnDefinitions?: ReadonlyArray<{ name: string }> };
    return columnDefinitions.map(({ name }) => name);
  }

  async function answer(one: SchemaCase, oldName: string): Promise<Answer> {
    const query = 'dryRun=All&fieldValidation=Warn';
    if (one.old === undefined) return toAnswer(await server.call('POST', `${folder}?${query}`, objectOf(one)));
    const stored = await server.call('GET', `${folder}/${oldName}`);
    const { resourceVersion } = (stored.body as { metadata: JsonObject }).metadata;
    const object = named(objectOf(one), oldName, { resourceVersion });
    return toAnswer(await server.call('PUT', `${folder}/${oldName}?${query}`, object));
  }
});

function definition(schema: Schema, column: string): JsonObject {
  const { group, version, kind, plural } = sample;
  const names = { kind, plural, singular: 'sample', listKind: `${kind}List` };
  const additionalPrinterColumns = [{ name: column, type: 'string', jsonPath: '.metadata.name' }];
  const served = { name: version, served: true, storage: true, additionalPrinterColumns };
  const versions = [{ ...served, schema: { openAPIV3Schema: schema } }];
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: crdName },
    spec: { group, scope: 'Namespaced', names, versions },
  };
}

function named(object: JsonObject, name: string | undefined, more: JsonObject = {}): JsonObject {
  return { ...object, metadata: { ...(object.metadata as JsonObject), name, ...more } };
}

type Reply = { readonly code: number; readonly body: unknown; readonly warnings: readonly string[] };

function toAnswer({ code, body, warnings }: Reply): Answer {
  const { spec, message, details } = body as {
    spec?: unknown;
    message?: string;
    details?: { causes?: Answer['causes'] };
  };
  const unknown = warnings.flatMap((warning) => /^unknown field "(.*)"$/.exec(warning)?.[1] ?? []);
  const others = warnings.filter((warning) => !warning.startsWith('unknown field'));
  const causes = details?.causes?.map(({ field, reason, message }) => ({ field, reason, message }));
  return {
    ...(unknown.length > 0 ? { unknown } : {}),
    ...(others.length > 0 ? { warnings: others } : {}),
    ...(code < 300 ? { stored: spec ?? null } : causes ? { causes: sorted(causes) } : { refused: message ?? '' }),
  };
}

/** Go's maps have no order, so neither have the causes. */
function sorted<T>(causes: readonly T[]): T[] {
  return [...causes].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}
