// No body makes the function crash or hang, or report an error of the caller as its own.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { kinds } from '#crds/kinds/kinds.ts';
import { createWorld, depsOf, GOOD, objectOf, post, requestOf } from '../../../test/admission/fixtures.ts';
import { runs } from '../../../test/support/runs.ts';

const { cluster } = await createWorld();
const deps = depsOf(cluster);
/** The number of generated bodies; `npm run bench -- hostile` sends many more. */
const BODIES = Number(process.env.HOSTILE_BODIES ?? runs(1600));
const share = (part: number) => ({ numRuns: Math.ceil(BODIES * part) });
const DEADLINE = 60_000 + 50 * BODIES;

const PATHS = ['/mutate', '/validate', '/validate?timeout=x', '/mutate?timeout=1e9s'];

/** 200 with a complete answer, or an error of the caller, never ours. */
async function reviewStatus(path: string, body: string | Uint8Array): Promise<number> {
  const reply = await post(deps, path, body);
  expect([200, 400, 413]).toContain(reply.status);
  const { kind, response } = (await reply.json()) as { kind: string; response?: { uid: unknown; allowed: unknown } };
  if (reply.status === 200) {
    expect(typeof response?.uid).toBe('string');
    expect(typeof response?.allowed).toBe('boolean');
  } else expect(kind).toBe('Status');
  return reply.status;
}

const paths = fc.constantFrom(...PATHS);
const evil = fc.oneof(
  { weight: 3, arbitrary: fc.jsonValue() },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      null,
      '',
      'x'.repeat(10_000),
      '\ud800',
      '\u0000',
      '𝕏'.repeat(300),
      -1,
      1e308,
      2 ** 53,
      true,
      [],
      {},
    ),
  },
);
/** A JSON text in which some values are replaced by others, and members with bad names are added. */
const twisted = (value: unknown): fc.Arbitrary<unknown> =>
  fc.infiniteStream(fc.integer({ min: 0, max: 9 })).chain((dice) =>
    fc.infiniteStream(evil).map((replacements) =>
      twist(
        value,
        () => dice.next().value ?? 1,
        () => replacements.next().value,
      ),
    ),
  );

function twist(value: unknown, dice: () => number, next: () => unknown): unknown {
  if (dice() === 0) return next();
  if (Array.isArray(value)) return value.map((entry) => twist(entry, dice, next));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, entry]) => [name, twist(entry, dice, next)]);
  if (dice() === 0) entries.push(['__proto__', next()], ['constructor', next()], ['', next()]);
  return Object.fromEntries(entries.filter(() => dice() !== 0));
}

const reviews = fc
  .record({
    kind: fc.constantFrom(...kinds.map(({ kind }) => kind)),
    update: fc.boolean(),
    dryRun: fc.boolean(),
  })
  .chain(({ kind, update, dryRun }) => {
    const object = objectOf(kind, GOOD[kind]);
    return fc
      .tuple(twisted(object), twisted(object))
      .map(([twistedObject, twistedOld]) =>
        requestOf(object, { object: twistedObject, dryRun, ...(update ? { oldObject: twistedOld } : {}) }),
      );
  });

test('no text is answered with a status above 400', { timeout: DEADLINE }, async () => {
  const texts = fc.oneof(
    fc.string(),
    fc.json(),
    fc.string({ unit: 'binary' }),
    reviews.map((request) =>
      JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }).slice(0, -7),
    ),
  );
  await fc.assert(
    fc.asyncProperty(paths, texts, async (path, text) => {
      expect(await reviewStatus(path, text)).toBe(400);
    }),
    share(1 / 4),
  );
  await fc.assert(
    fc.asyncProperty(
      paths,
      fc.uint8Array({ maxLength: 200 }),
      async (path, bytes) => void (await reviewStatus(path, bytes)),
    ),
    share(1 / 8),
  );
});

test('no AdmissionReview around a valid object makes the function crash', { timeout: DEADLINE }, async () => {
  await fc.assert(
    fc.asyncProperty(paths, reviews.chain(twisted), async (path, request) => {
      await reviewStatus(path, JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request }));
    }),
    share(1 / 4),
  );
});

test('every object in a valid AdmissionReview gets an answer', { timeout: DEADLINE }, async () => {
  let answered = 0;
  await fc.assert(
    fc.asyncProperty(paths, reviews, async (path, request) => {
      const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
      expect(await reviewStatus(path, body)).toBe(200);
      answered += 1;
    }),
    share(3 / 8),
  );
  expect(answered).toBe(share(3 / 8).numRuns);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test.each([
  ['nesting of 10,000 in the envelope', `${'['.repeat(10_000)}${']'.repeat(10_000)}`],
  ['nesting of 10,000 in a spec', reviewText(`{"models":${'['.repeat(10_000)}${']'.repeat(10_000)}}`)],
  ['nesting of a million', '{"a":'.repeat(1_000_000)],
  ['duplicate members', reviewText('{"maxBudget":"1","maxBudget":{},"maxBudget":"2"}')],
  ['a prototype', reviewText('{"__proto__":{"keyAlias":"a","polluted":1},"constructor":{"prototype":{"polluted":1}}}')],
  ['lone surrogates', reviewText('{"keyAlias":"\\ud800","models":["\\udfff"],"maxBudget":"\\ud83d"}')],
  ['NaN', reviewText('{"rpmLimit":NaN}')],
  ['a number out of range', reviewText('{"rpmLimit":1e999,"tpmLimit":-0}')],
  [
    'a hundred thousand models',
    reviewText(`{"models":[${Array.from({ length: 100_000 }, (_, index) => `"m${index}"`).join()}]}`),
  ],
  ['a hundred thousand equal models', reviewText(`{"models":[${'"m",'.repeat(100_000)}"m"]}`)],
  ['a text of 6 MiB', reviewText(`{"keyAlias":"${'x'.repeat(6 * 1024 * 1024)}"}`)],
  ['a byte order mark', `\ufeff${reviewText('{}')}`],
  ['gzip', new Uint8Array([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0])],
])(
  '%s is answered, and does not hang',
  async (_, body) => {
    for (const path of ['/mutate', '/validate']) await reviewStatus(path, body);
  },
  30_000,
);

function reviewText(spec: string): string {
  const request = JSON.stringify(requestOf(objectOf('VirtualKey', 'SPEC')));
  return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":${request.replace('"SPEC"', () => spec)}}`;
}
