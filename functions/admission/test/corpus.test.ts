// /mutate validates each object of the shared corpus with the same result as the CRD.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '#core/ports/cluster.ts';
import { type KindName, kinds } from '#crds/kinds/kinds.ts';
import { SHARED_CREDENTIALS_ALLOWED, SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import { cases } from '#crds/test/cases/all.ts';
import { type Manifest, objectsOf } from '#crds/test/cases/case.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { validate } from '#crds/validation/validate.ts';
import { ask, createWorld, depsOf, requestOf } from '../../../test/admission/fixtures.ts';
import { type Mutant, mutant } from '../../../test/support/crds-mutants.ts';
import { runs } from '../../../test/support/runs.ts';

const { cluster } = await createWorld();
const annotations = { [SHARED_CREDENTIALS_ANNOTATION]: SHARED_CREDENTIALS_ALLOWED };

function full(kind: KindName, manifest: Manifest): KubeObject {
  const apiVersion = kinds.find((one) => one.kind === kind)?.apiVersion ?? '';
  return { apiVersion, kind, ...manifest, metadata: { namespace: 'ai', annotations, ...manifest.metadata } };
}

/** Whether the process knows the time zone. True if there is none. */
function isTimeZone(name: unknown): boolean {
  if (typeof name !== 'string') return true;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

describe('a corpus of objects, good and bad', () => {
  test.each(cases)('a $kind $what', async (one) => {
    const { object, old } = objectsOf(one);
    const more = old === undefined ? {} : { oldObject: full(one.kind, old) };
    const { allowed, status } = await ask(depsOf(cluster), '/mutate', requestOf(full(one.kind, object), more));
    expect(status?.message ?? '').toEqual(allowed ? '' : expect.any(String));
    expect(allowed).toBe(one.findings.length === 0);
    for (const [, path] of one.findings) expect(status?.message).toContain(`${path}: `);
  });

  test('changed in one place is refused exactly if the schema and its rules refuse it', async () => {
    const expectSameResult = async ({ kind: name, object }: Mutant) => {
      // An empty `userAlias` gets its default before the schema sees it.
      if (isMap(object.spec) && object.spec.userAlias === '') return;
      const kind = kinds.find((one) => one.kind === name);
      const found = kind === undefined ? [] : validate(kind, object).violations;
      const { allowed, status } = await ask(depsOf(cluster), '/mutate', requestOf(full(name, object)));
      // No schema knows the names of time zones.
      const isGood = found.length === 0 && isTimeZone(isMap(object.spec) ? object.spec.budgetTimeZone : undefined);
      expect(allowed, JSON.stringify({ found, status })).toBe(isGood);
    };
    await fc.assert(fc.asyncProperty(mutant, expectSameResult), { numRuns: runs(1000) });
  });
});
