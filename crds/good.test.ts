// Is the quick answer the same as the long one?
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { usual } from './accepted.ts';
import { cases } from './cases/all.ts';
import { good, objectsOf } from './cases/case.ts';
import { isGood } from './good.ts';
import { judge } from './judge.ts';
import { kindOf, kinds } from './kinds.ts';

/** For the long answer alone: the API server drops a null before it judges, and the schema's reader leaves out `__proto__`. */
const isOdd = (value: unknown): boolean => /null|__proto__/.test(JSON.stringify(value ?? {}));

describe('the quick answer is what the long one finds', () => {
  test.each(cases)('$kind $what', (one) => {
    const { object, old } = objectsOf(one);
    const found = judge(kindOf[one.kind], object, old);
    const quick = isGood(kindOf[one.kind], object, old);
    if (isOdd([object, old])) expect(quick && found.length > 0).toBe(false);
    else expect(quick).toBe(found.length === 0);
  });
});

/** Every place in a JSON value, the value itself included. */
function places(value: unknown, path: readonly string[] = []): ReadonlyArray<readonly string[]> {
  const children = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return [path, ...children.flatMap(([name, child]) => places(child, [...path, name]))];
}

function changed(target: unknown, [step, ...rest]: readonly string[], change: (now: unknown) => unknown): unknown {
  if (step === undefined) return change(target);
  if (Array.isArray(target)) return target.map((one, at) => (String(at) === step ? changed(one, rest, change) : one));
  const entries = Object.entries(target as object);
  return Object.fromEntries(
    entries.map(([name, child]) => [name, name === step ? changed(child, rest, change) : child]),
  );
}

/** What is nearly right, at the edges of what our schemas bound, and what is nothing of the kind. */
const values = fc.oneof(
  fc.constantFrom<unknown>(
    '',
    ' ',
    'a',
    'A',
    '-',
    'a-',
    'a.b',
    'a/b',
    '12',
    '0.5',
    '12.',
    '30d',
    '36526d',
    '1mo',
    'All',
  ),
  fc.constantFrom<unknown>('a'.repeat(256), 'a'.repeat(257), '😀'.repeat(256), 'a'.repeat(4097), 'https://x', 'x@y'),
  fc.constantFrom<unknown>(0, 1, -1, 1.5, 1000, 1001, 1_000_000_000_000, 2 ** 53, true, false, null, undefined),
  fc.constantFrom<unknown>([], {}, ['a'], ['a', 'a'], [{ name: 'a' }, { name: 'a' }], { key: 'a' }, { '': 'a' }),
  fc.constant<unknown>(JSON.parse('{"__proto__": "a"}')),
  fc.jsonValue(),
);

/** What stands there made into something else: often into something that is as good. */
const changes = fc.oneof(
  values.map((value) => () => value),
  fc.constantFrom(
    (now: unknown) => (typeof now === 'string' ? `${now}a` : typeof now === 'number' ? now + 1 : now),
    (now: unknown) => (typeof now === 'string' ? now.slice(1) : typeof now === 'boolean' ? !now : now),
    (now: unknown) => (Array.isArray(now) ? [...now, now[0]] : now),
    (now: unknown) => (Array.isArray(now) ? now.slice(1) : now),
    () => undefined,
  ),
);

const edits = fc.array(fc.tuple(fc.nat(), changes), { minLength: 1, maxLength: 2 });

const editedBy = (spec: unknown, list: ReadonlyArray<readonly [number, (now: unknown) => unknown]>): unknown =>
  list.reduce<unknown>((now, [at, change]) => {
    const all = places(now);
    return changed(now, all[at % all.length] ?? [], change);
  }, spec);

test('no object is let through that the long answer finds something in, wherever it was changed', () => {
  const full = cases
    .filter(({ findings }) => findings.length === 0)
    .map((one) => ({ kind: one.kind, ...objectsOf(one) }));
  const counts = { good: 0, bad: 0 };
  fc.assert(
    fc.property(
      fc.constantFrom(...full),
      edits,
      fc.boolean(),
      edits,
      ({ kind: name, object, old }, change, stored, before) => {
        const kind = kindOf[name];
        const judged = { ...object, spec: editedBy(object.spec, change) };
        const was = stored ? { ...object, spec: editedBy((old ?? object).spec, before) } : old;
        const found = judge(kind, judged, was);
        const quick = isGood(kind, judged, was);
        counts[quick ? 'good' : 'bad'] += 1;
        expect(quick && found.length > 0, JSON.stringify([judged, was, found])).toBe(false);
        // And nothing good is sent the long way without a reason.
        if (was === undefined && !isOdd(judged) && found.length === 0) expect(quick, JSON.stringify(judged)).toBe(true);
      },
    ),
    { numRuns: 4000 },
  );
  expect(Math.min(counts.good, counts.bad)).toBeGreaterThan(300);
});

test('any JSON can be asked about', () => {
  for (const kind of kinds) {
    for (const spec of [undefined, null, 1, 'spec', [], [1], { connectionRef: 'x' }, { models: [null] }]) {
      expect(isGood(kind, { spec }, { spec })).toBe(false);
      expect(isGood(kind, { spec })).toBe(false);
      expect(isGood(kind, { spec: good[kind.kind].spec }, { spec })).toBe(
        kind.kind !== 'VirtualKey' && typeof spec === 'object' && spec !== null && !Array.isArray(spec),
      );
    }
  }
});

test('what is left out reads as the schema reads it', () => {
  for (const kind of kinds) {
    const read = Object.entries(kind.spec.shape).map(([name, schema]) => [name, schema.safeParse(undefined).data]);
    expect(usual[kind.kind]).toEqual(Object.fromEntries(read.filter(([, value]) => value !== undefined)));
  }
});
