// Mutants of valid objects: one field replaced by a hostile value, or removed.
import fc from 'fast-check';
import type { KindName } from '#crds/kinds/kinds.ts';
import { cases } from '#crds/test/cases/all.ts';
import { edited, type Manifest, objectsOf } from '#crds/test/cases/case.ts';

export interface Mutant {
  readonly kind: KindName;
  readonly object: Manifest;
  /** The field that was replaced, and its new value. */
  readonly path: string;
  readonly value: unknown;
}

const SMALL = 20_000;

const bases = cases
  .filter((one) => one.findings.length === 0 && one.stored === undefined)
  .map((one) => ({ kind: one.kind, object: objectsOf(one).object }))
  .filter(({ object }) => JSON.stringify(object).length < SMALL);

const hostile: readonly unknown[] = [
  ...[undefined, null, true, false, 0, -1, 1, 1.5, 2 ** 53, 1e21, -(2 ** 40)],
  ...[
    '',
    ' ',
    'a',
    'A b',
    ' a',
    'a ',
    'a\n',
    'a\u0000b',
    '\u2003',
    '\ufeff',
    'true',
    'null',
    'a/b',
    '/a',
    'a/',
    'a.b',
    '-a',
    'a-',
    'ä',
  ],
  ...[
    '10',
    '0',
    '0.5',
    '.5',
    '012',
    '-1',
    '1e3',
    '99999999999',
    '0.0000000001',
    '30d',
    '1mo',
    '0s',
    '99999999d',
    '1217mo',
    '1218mo',
  ],
  ...['x'.repeat(64), 'x'.repeat(254), 'x'.repeat(257), '🙂'.repeat(256), '🙂'.repeat(257), 'x'.repeat(3000)],
  ...[
    [],
    [null],
    [[]],
    [{}],
    ['a'],
    ['a', 'a'],
    ['a', 1],
    [{ name: 'a' }],
    [{ name: 'a' }, { name: 'a' }],
    [{ name: null }],
  ],
  ...[
    {},
    { a: null },
    { a: 1 },
    { a: 'b' },
    { '': 'x' },
    { 'a b': 'x' },
    { key: 'x' },
    { name: 'a' },
    { model: 'a/b' },
  ],
];

export const mutant: fc.Arbitrary<Mutant> = fc
  .constantFrom(...bases)
  .chain(({ kind, object }) =>
    fc.record({
      kind: fc.constant(kind),
      object: fc.constant(object),
      path: fc.constantFrom(...pathsOf(object.spec, 'spec')),
      value: fc.constantFrom(...hostile),
    }),
  )
  // As JSON: a member that is undefined is absent, an entry of a list that is undefined is null.
  .map(({ kind, object, path, value }) => {
    const mutated = JSON.parse(JSON.stringify(edited(object, { [path]: value })));
    return { kind, path, value, object: mutated };
  });

function pathsOf(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [path];
  // A member name with a dot is not a path.
  const below = Object.entries(value).filter(([name]) => !name.includes('.'));
  return [path, ...below.flatMap(([name, child]) => pathsOf(child, `${path}.${name}`))];
}
