// Changes of the CRDs since the last release that stored objects, or people's manifests, would not survive. `npm run
// check` runs it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listOf } from '#core/json/json.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { readDocuments } from '../packaging/manifests/apply.ts';
import { fileOf, lastRelease } from './last-release.ts';

const FILE = 'infra/platforms/kubernetes/crds.yaml';

/** One line for each version, field, type or value that is gone, and each field that is newly required. */
export function findBreaks(before: string, after: string): ReadonlyArray<string> {
  const now = schemasOf(after);
  return [...schemasOf(before)].flatMap(([name, schema]) => {
    const next = now.get(name);
    return next === undefined ? [`${name}: is not served any more`] : compare(`${name}:`, schema, next);
  });
}

type Schema = Readonly<Record<string, unknown>>;

/** By `kind version`, of the versions that are served. */
function schemasOf(text: string): ReadonlyMap<string, Schema> {
  const schemas = readDocuments(text).flatMap(({ spec }) => {
    const { names, versions } = spec as {
      readonly names: { readonly kind: string };
      readonly versions: ReadonlyArray<{ name: string; served: boolean; schema: { openAPIV3Schema: Schema } }>;
    };
    return versions
      .filter(({ served }) => served)
      .map(({ name, schema }): [string, Schema] => [`${names.kind} ${name}`, schema.openAPIV3Schema]);
  });
  return new Map(schemas);
}

function compare(path: string, before: Schema, after: Schema): ReadonlyArray<string> {
  const [fields, next] = [mapOf(before.properties), mapOf(after.properties)];
  const values = listOf(after.enum);
  const was = new Set(listOf(before.required));
  return [
    ...(before.type === after.type ? [] : [`${path} was of type ${before.type}, is of type ${after.type}`]),
    ...narrowed(path, before, after),
    ...(after.enum === undefined ? [] : goneOf(before.enum, values)).map(
      (value) => `${path} must not be ${value} any more`,
    ),
    ...listOf(after.required)
      .filter((name) => !was.has(name))
      .map((name) => `${path}.${name} is newly required`),
    ...Object.entries(fields).flatMap(([name, schema]) => {
      const same = next[name];
      return isMap(same) && isMap(schema) ? compare(`${path}.${name}`, schema, same) : [`${path}.${name} is gone`];
    }),
    ...['items', 'additionalProperties'].flatMap((name) => {
      const [old, same] = [before[name], after[name]];
      return isMap(old) && isMap(same) ? compare(`${path}[]`, old, same) : [];
    }),
  ];
}

const mapOf = (value: unknown): Schema => (isMap(value) ? value : {});

/** A field without a list of values took any. */
const goneOf = (before: unknown, values: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  before === undefined ? [`outside ${values.join(', ')}`] : listOf(before).filter((value) => !values.includes(value));

/** Bounds, and whether the new one refuses what the old one took. */
const BOUNDS: Readonly<Record<string, (before: number, after: number) => boolean>> = {
  maximum: (before, after) => after < before,
  maxLength: (before, after) => after < before,
  maxItems: (before, after) => after < before,
  maxProperties: (before, after) => after < before,
  minimum: (before, after) => after > before,
  minLength: (before, after) => after > before,
  minItems: (before, after) => after > before,
};

function narrowed(path: string, before: Schema, after: Schema): ReadonlyArray<string> {
  return Object.entries(BOUNDS).flatMap(([name, refuses]) => {
    const [old, now] = [before[name], after[name]];
    if (typeof now !== 'number' || (typeof old === 'number' && !refuses(old, now))) return [];
    return [`${path} has ${name} ${now}, had ${old ?? 'none'}`];
  });
}

if (import.meta.main) {
  const release = lastRelease();
  if (release === undefined) process.stdout.write('no tag yet: the CRDs are compared from the first release on\n');
  else {
    const breaks = findBreaks(fileOf(release, FILE), readFileSync(join(import.meta.dirname, '../..', FILE), 'utf8'));
    for (const line of breaks) process.stdout.write(`since ${release}: ${line}\n`);
    process.exitCode = breaks.length === 0 ? 0 : 1;
  }
}
