// Does the embedded cluster judge our objects as `judge`, and so as a real API server does?
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toManifest } from '#crds/generators/crd.ts';
import { type KindName, kinds } from '#crds/kinds/kinds.ts';
import { cases } from '#crds/test/cases/all.ts';
import { type Case, type Manifest, objectsOf } from '#crds/test/cases/case.ts';
import { validate } from '#crds/validation/validate.ts';
import { mutant } from '../../../../test/support/crds-mutants.ts';
import { runs } from '../../../../test/support/runs.ts';
import type { JsonObject } from '../../../apiserver/schema/json.ts';
import type { Schema } from '../../../apiserver/schema/schema.ts';
import { createStructural } from '../../../apiserver/schema/structural.ts';

const judges = new Map(
  kinds.map((kind) => {
    const [version] = toManifest(kind).spec.versions;
    const schema: unknown = version.schema.openAPIV3Schema;
    return [kind.kind, { kind, structural: createStructural(schema as Schema) }] as const;
  }),
);

test.each(cases)('the embedded cluster judges a $kind $what as we do', (one) => {
  const { object, old } = objectsOf(one);
  const causes = causesOf(one.kind, object, old);
  if (one.findings.length === 0) expect(causes).toEqual([]);
  const fields = causes.map(({ field }) => field);
  for (const finding of one.findings) expect(fields).toContain(fieldIn(finding));
});

test('the embedded cluster never accepts what we refuse, nor refuses what we accept', () => {
  fc.assert(
    fc.property(mutant, ({ kind, object }) => {
      const found = validate(kindOf(kind).kind, object).violations;
      const causes = causesOf(kind, object);
      expect(causes.length > 0, JSON.stringify({ causes, found })).toBe(found.length > 0);
    }),
    { numRuns: runs(2000) },
  );
});

function kindOf(name: KindName) {
  const judge = judges.get(name);
  if (judge === undefined) throw new Error(`no kind ${name}`);
  return judge;
}

function causesOf(name: KindName, object: Manifest, old?: Manifest) {
  const { kind, structural } = kindOf(name);
  const stored = ({ metadata, spec }: Manifest) => {
    const json = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...(spec !== undefined && { spec }) };
    return structural.applyDefaults(json as unknown as JsonObject);
  };
  return structural.validate(stored(object), old && stored(old)).causes;
}

/** A repeated entry is pointed at as a whole; every other field is named as we do. */
const fieldIn = ([rule, path]: Case['findings'][number]) =>
  rule === 'Duplicate' ? path.slice(0, path.lastIndexOf(']') + 1) : path;
