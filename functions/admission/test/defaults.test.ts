// Defaults of /mutate: only those that no schema can set, and with the same result when repeated.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import { REQUESTED_BY_ANNOTATION } from '#crds/names/group.ts';
import {
  ask,
  createWorld,
  depsOf,
  GOOD,
  objectOf,
  type Response,
  requestOf,
} from '../../../test/admission/fixtures.ts';
import { runs } from '../../../test/support/runs.ts';

const { cluster } = await createWorld();
const deps = depsOf(cluster);
const mutate = (object: KubeObject, more = {}) => ask(deps, '/mutate', requestOf(object, more));
const operationsOf = ({ patch }: Response): ReadonlyArray<{ op: string; path: string; value?: unknown }> =>
  patch === undefined ? [] : JSON.parse(Buffer.from(patch, 'base64').toString('utf8'));
const requestedBy = { [REQUESTED_BY_ANNOTATION]: 'ada' };
const AT = '/metadata/annotations/gateway-operator.dev~1requested-by';

/** Applies the operations of RFC 6902 that our patches use. An operation that does not fit throws. */
function patched(object: KubeObject, response: Response): KubeObject {
  const copy = structuredClone(object) as unknown as Record<string, unknown>;
  for (const { op, path, value } of operationsOf(response)) {
    const steps = path
      .slice(1)
      .split('/')
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = steps.pop() ?? '';
    const parent = steps.reduce<Record<string, unknown>>((at, step) => {
      if (!Object.hasOwn(at, step)) throw new Error(`no ${step} in ${path}`);
      return at[step] as Record<string, unknown>;
    }, copy);
    if (op !== 'add' && !Object.hasOwn(parent, last)) throw new Error(`nothing to ${op} at ${path}`);
    if (op === 'remove') delete parent[last];
    else parent[last] = value;
  }
  return copy as unknown as KubeObject;
}

describe('a key', () => {
  const key = (change: object = {}, metadata = {}) =>
    objectOf('VirtualKey', { ...GOOD.VirtualKey, ...change }, metadata);

  test('has an annotation with its requester, whatever the file contains', async () => {
    expect(operationsOf(await mutate(key()))).toEqual([
      { op: 'add', path: '/metadata/annotations', value: requestedBy },
    ]);
    const forged = key({}, { annotations: { [REQUESTED_BY_ANNOTATION]: 'root' } });
    expect(operationsOf(await mutate(forged))).toEqual([{ op: 'replace', path: AT, value: 'ada' }]);
  });

  test('keeps that annotation on update: nobody can change it, remove it, or add it later', async () => {
    const oldObject = key({}, { annotations: { [REQUESTED_BY_ANNOTATION]: 'grace', a: 'b' } });
    const replaced = key({}, { annotations: { a: 'b' } });
    expect(operationsOf(await mutate(replaced, { oldObject }))).toEqual([{ op: 'add', path: AT, value: 'grace' }]);
    expect(operationsOf(await mutate(oldObject, { oldObject }))).toEqual([]);
    const late = key({}, { annotations: requestedBy });
    expect(operationsOf(await mutate(late, { oldObject: key() }))).toEqual([{ op: 'remove', path: AT }]);
  });

  test.each([
    ['30d', '1d'],
    ['5h', '30m'],
    ['10m', '1m'],
    ['1h', '6m'],
    ['10s', '1s'],
    ['3s', '1s'],
    ['36525d', '1d'],
  ])('that rotates every %s overlaps for %s', async (every, overlap) => {
    const object = key({ rotation: { every } }, { annotations: requestedBy });
    expect(operationsOf(await mutate(object))).toEqual([{ op: 'add', path: '/spec/rotation/overlap', value: overlap }]);
  });

  test('that rotates every second gets no overlap', async () => {
    const response = await mutate(key({ rotation: { every: '1s' } }, { annotations: requestedBy }));
    expect(response).toEqual({ uid: expect.any(String), allowed: true });
  });

  test('has a default overlap that follows `every`; an overlap of its author stays', async () => {
    const annotations = { annotations: requestedBy };
    const oldObject = key({ rotation: { every: '30d', overlap: '1d' } }, annotations);
    const faster = key({ rotation: { every: '1h', overlap: '1d' } }, annotations);
    expect(operationsOf(await mutate(faster, { oldObject }))).toEqual([
      { op: 'replace', path: '/spec/rotation/overlap', value: '6m' },
    ]);
    const written = key({ rotation: { every: '20d', overlap: '2d' } }, annotations);
    const before = key({ rotation: { every: '30d', overlap: '2d' } }, annotations);
    expect(operationsOf(await mutate(written, { oldObject: before }))).toEqual([]);
  });
});

describe('a user', () => {
  const user = (change: object = {}, metadata = {}) => objectOf('User', { ...GOOD.User, ...change }, metadata);

  test('gets the part before the @ as its alias', async () => {
    const object = user({ userAlias: undefined, autoCreateKey: false });
    expect(operationsOf(await mutate(object))).toEqual([{ op: 'add', path: '/spec/userAlias', value: 'alice' }]);
  });

  test('has an annotation with the user that switched autoCreateKey on, which the key copies', async () => {
    const off = user({ autoCreateKey: false });
    expect(operationsOf(await mutate(user()))).toEqual([
      { op: 'add', path: '/metadata/annotations', value: requestedBy },
    ]);
    expect(operationsOf(await mutate(off))).toEqual([]);
    expect(operationsOf(await mutate(user(), { oldObject: off }))).toHaveLength(1);
    const stored = user({}, { annotations: { [REQUESTED_BY_ANNOTATION]: 'grace' } });
    expect(operationsOf(await mutate(stored, { oldObject: stored }))).toEqual([]);
  });
});

test('an instance, a team and every complete object gets no patch', async () => {
  for (const kind of ['GatewayInstance', 'Team'] as const) {
    expect(await mutate(objectOf(kind))).toEqual({ uid: expect.any(String), allowed: true });
  }
});

test('a refused object gets no patch', async () => {
  const response = await mutate(objectOf('VirtualKey', { ...GOOD.VirtualKey, maxBudget: 'ten' }));
  expect(response).toMatchObject({ allowed: false, status: { code: 422 } });
  expect(response).not.toHaveProperty('patch');
});

describe('any request', () => {
  const durations = fc
    .tuple(fc.integer({ min: 1, max: 100_000 }), fc.constantFrom('s', 'm', 'h', 'd', 'w', 'mo'))
    .map(([n, unit]) => `${n}${unit}`);
  const annotations = fc.option(fc.dictionary(fc.constantFrom(REQUESTED_BY_ANNOTATION, 'a/b~c', 'x'), fc.string()), {
    nil: undefined,
  });
  const objects = fc
    .record({
      kind: fc.constantFrom<KindName>('GatewayInstance', 'VirtualKey', 'User', 'Team'),
      annotations,
      rotation: fc.option(fc.record({ every: durations, overlap: durations }, { requiredKeys: ['every'] }), {
        nil: undefined,
      }),
      userAlias: fc.option(fc.constantFrom('alice', ''), { nil: undefined }),
      autoCreateKey: fc.boolean(),
    })
    .map(({ kind, annotations, ...change }) => {
      const fields =
        kind === 'VirtualKey'
          ? { rotation: change.rotation }
          : { userAlias: change.userAlias, autoCreateKey: change.autoCreateKey };
      const spec = kind === 'VirtualKey' || kind === 'User' ? { ...GOOD[kind], ...fields } : GOOD[kind];
      return JSON.parse(
        JSON.stringify(objectOf(kind, spec, annotations === undefined ? {} : { annotations })),
      ) as KubeObject;
    });

  test('has the same result if it is mutated twice, and an accepted object is accepted again unchanged', async () => {
    let admitted = 0;
    await fc.assert(
      fc.asyncProperty(objects, fc.option(objects, { nil: undefined }), async (object, old) => {
        const oldObject = old?.kind === object.kind ? { oldObject: old } : {};
        const once = await mutate(object, oldObject);
        if (!once.allowed) return;
        admitted += 1;
        const result = patched(object, once);
        expect(await mutate(result, oldObject)).toEqual({ uid: once.uid, allowed: true });
        expect(await mutate(result, { oldObject: result })).toEqual({ uid: once.uid, allowed: true });
      }),
      { numRuns: runs(500) },
    );
    expect(admitted).toBeGreaterThan(runs(200));
  });
});
