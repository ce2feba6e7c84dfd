// Does the embedded cluster judge our objects as `judge`, and so as a real API server does?
import { expect, test } from 'vitest';
import { cases } from '#crds/cases/all.ts';
import { type Case, type Manifest, objectsOf } from '#crds/cases/case.ts';
import { kinds } from '#crds/kinds.ts';
import { toManifest } from '#crds/manifest.ts';
import type { JsonObject } from './local/cluster/schema/json.ts';
import type { Schema } from './local/cluster/schema/schema.ts';
import { createStructural } from './local/cluster/schema/structural.ts';

const judges = new Map(
  kinds.map((kind) => {
    const [version] = toManifest(kind).spec.versions;
    const schema: unknown = version.schema.openAPIV3Schema;
    return [kind.kind, { kind, structural: createStructural(schema as Schema) }] as const;
  }),
);

test.each(cases)('the embedded cluster judges a $kind $what as we do', (one) => {
  const judge = judges.get(one.kind);
  if (judge === undefined) throw new Error(`no kind ${one.kind}`);
  const { kind, structural } = judge;
  const stored = ({ metadata, spec }: Manifest) => {
    const object = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, spec } as unknown as JsonObject;
    return structural.applyDefaults(object);
  };
  const { object, old } = objectsOf(one);
  const causes = structural.validate(stored(object), old && stored(old));
  if (one.findings.length === 0) expect(causes).toEqual([]);
  const fields = causes.map(({ field }) => field);
  for (const finding of one.findings) expect(fields).toContain(fieldIn(finding));
});

/** A repeated entry is pointed at as a whole; every other field is named as we do. */
const fieldIn = ([rule, path]: Case['findings'][number]) =>
  rule === 'Duplicate' ? path.slice(0, path.lastIndexOf(']') + 1) : path;
