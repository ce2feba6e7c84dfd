// Answers of the function by admission.k8s.io/v1: their form, their time, and the HTTP status of each failure.
import { describe, expect, test } from 'vitest';
import { ClusterError } from '#core/ports/cluster.ts';
import {
  ask,
  createWorld,
  depsOf,
  GOOD,
  objectOf,
  post,
  requestOf,
  SEGMENT,
} from '../../../test/admission/fixtures.ts';
import { type AdmissionDependencies, createAdmission, type ReviewRecord, type Trigger } from '../app.ts';

const { cluster } = await createWorld();
const deps = depsOf(cluster);
const good = objectOf('VirtualKey');
const bad = objectOf('VirtualKey', { ...GOOD.VirtualKey, maxBudget: 'ten' });
const reviewOf = (request: object) => ({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });

describe('an answer', () => {
  test('is a review with the uid of the request, and without members that the API does not have', async () => {
    const reply = await post(deps, '/validate?timeout=5s', reviewOf(requestOf(good)));
    expect(reply.headers.get('content-type')).toBe('application/json');
    expect(await reply.json()).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: requestOf(good).uid, allowed: true },
    });
  });

  test('has patch and patchType together, and only from /mutate', async () => {
    const mutated = await ask(deps, '/mutate', requestOf(good));
    expect(Object.keys(mutated).sort()).toEqual(['allowed', 'patch', 'patchType', 'uid']);
    expect(mutated.patchType).toBe('JSONPatch');
    const validated = await ask(deps, '/validate', requestOf(good));
    expect(Object.keys(validated).sort()).toEqual(['allowed', 'uid']);
  });

  test.each(['/mutate', '/validate'])('needs no members that a create does not have: %s', async (path) => {
    const { oldObject: _, ...request } = { ...requestOf(good), oldObject: null };
    expect(await ask(deps, path, request)).toMatchObject({ allowed: true });
  });

  test('that refuses has code 422, so clients do not retry', async () => {
    for (const path of ['/mutate', '/validate']) {
      expect(await ask(deps, path, requestOf(bad))).toEqual({
        uid: expect.any(String),
        allowed: false,
        status: {
          code: 422,
          reason: 'Forbidden',
          message: expect.stringMatching(/^spec\.maxBudget: Invalid value: "ten": /),
        },
      });
    }
  });

  test('has warnings of one line and at most 256 characters, with nothing lost', async () => {
    const connectionRef = { instanceRef: { name: 'x'.repeat(120), namespace: 'platform' } };
    const oldObject = objectOf('VirtualKey', { ...GOOD.VirtualKey, connectionRef });
    const { warnings = [] } = await ask(deps, '/validate', requestOf(oldObject, { oldObject }));
    expect(warnings).toHaveLength(2);
    for (const warning of warnings) {
      expect([...warning].length).toBeLessThanOrEqual(256);
      expect(warning).not.toMatch(/[\r\n]/);
    }
    expect(warnings.join(' ')).toMatch(
      /^spec\.connectionRef\.instanceRef: Not found: "platform\/x+…": no GatewayInstance .* allow this namespace$/,
    );
  });
});

describe('a request that is not validated', () => {
  const cases: ReadonlyArray<[string, Record<string, unknown>]> = [
    ['a deletion', { operation: 'DELETE', object: null, oldObject: bad }],
    ['a connection', { operation: 'CONNECT', object: null }],
    ['a status update', { subResource: 'status', oldObject: good }],
    [
      'an object that is being deleted',
      { object: objectOf('VirtualKey', {}, { deletionTimestamp: '2026-11-21T12:00:00Z' }), oldObject: bad },
    ],
    ['a write of the reconciler', { userInfo: { username: 'system:serviceaccount:gateway-operator:reconcile' } }],
    ['a kind that is not ours', { kind: { group: '', version: 'v1', kind: 'Pod' }, object: { kind: 'Pod' } }],
    ['a version that is not ours', { kind: { group: 'auth.gateway-operator.dev', version: 'v9', kind: 'VirtualKey' } }],
  ];
  test.each(cases)('%s is accepted', async (_, more) => {
    const own = ['system:serviceaccount:gateway-operator:reconcile'];
    for (const path of ['/mutate', '/validate']) {
      expect(await ask({ ...deps, exemptUsers: own }, path, requestOf(bad, more))).toEqual({
        uid: expect.any(String),
        allowed: true,
      });
    }
  });
});

test('a new object is validated although server-side apply gave it a deletionTimestamp', async () => {
  const object = objectOf('VirtualKey', {}, { deletionTimestamp: '2999-01-01T00:00:00Z' });
  expect(await ask(deps, '/validate', requestOf(object))).toMatchObject({ allowed: false });
});

describe('our own error', () => {
  test('is 500 with its cause, so the failurePolicy of the cluster decides', async () => {
    const world = await createWorld();
    world.cluster.inject(() => {
      throw new ClusterError('GET /api/v1: connect ECONNREFUSED');
    });
    const reply = await post(depsOf(world.cluster), '/validate', reviewOf(requestOf(good)));
    expect(reply.status).toBe(500);
    expect(await reply.json()).toMatchObject({ kind: 'Status', message: expect.stringContaining('ECONNREFUSED') });
  });

  test('does not hide a violation that is found without the cluster', async () => {
    const world = await createWorld();
    world.cluster.inject(() => {
      throw new ClusterError('no route');
    });
    expect(await ask(depsOf(world.cluster), '/validate', requestOf(bad))).toMatchObject({ allowed: false });
  });

  test('of a slow cluster is answered before `?timeout=` ends, without a decision on half of the facts', async () => {
    const world = await createWorld();
    const timers: Array<readonly [millis: number, ring: () => void]> = [];
    world.cluster.inject(() => {
      timers.at(-1)?.[1]();
      return new Promise(() => {});
    });
    const slow = depsOf(world.cluster, {
      timer: (millis, ring) => {
        timers.push([millis, ring]);
        return () => {};
      },
    });
    for (const request of [
      requestOf(good),
      requestOf(objectOf('VirtualKey', { ...GOOD.VirtualKey, softBudget: '11' })),
    ]) {
      const reply = await post(slow, '/validate?timeout=3s', reviewOf(request));
      expect(reply.status).toBe(500);
      expect(await reply.json()).toMatchObject({ message: 'the review could not be answered in time' });
    }
    expect(await ask(slow, '/validate?timeout=1s', requestOf(bad))).toMatchObject({ allowed: false });
    expect(timers.map(([millis]) => millis)).toEqual([2700, 2700, 900]);
  });
});

describe('a trigger of the reconciler', () => {
  const logOf = async (request: object, path = '/validate', more: Partial<AdmissionDependencies> = {}) => {
    const triggers: Array<Trigger | undefined> = [];
    const record = async ({ trigger }: ReviewRecord) => void triggers.push(trigger);
    const reply = await post({ ...deps, record, ...more }, path, reviewOf(request));
    expect(reply.status).toBe(200);
    return triggers.filter((trigger) => trigger !== undefined);
  };

  test('is sent for an accepted object', async () => {
    expect(await logOf(requestOf(good))).toEqual([
      { apiVersion: 'auth.gateway-operator.dev/v1alpha1', kind: 'VirtualKey', namespace: 'team-a', name: 'billing' },
    ]);
  });

  test('is not sent on dry run, from /mutate, or for a refused object', async () => {
    expect(await logOf(requestOf(good, { dryRun: true }))).toEqual([]);
    expect(await logOf(requestOf(good), '/mutate')).toEqual([]);
    expect(await logOf(requestOf(bad))).toEqual([]);
  });

  test('is sent for a deletion, which is always allowed: not on dry run, for the reconciler, or for a whole collection', async () => {
    const deletion = { operation: 'DELETE', object: null, oldObject: bad };
    const named = { kind: 'VirtualKey', namespace: 'team-a', name: 'billing' };
    expect(await logOf(requestOf(good, deletion))).toEqual([expect.objectContaining(named)]);
    expect(await logOf(requestOf(good, { ...deletion, dryRun: true }))).toEqual([]);
    expect(await logOf(requestOf(good, { ...deletion, name: '' }))).toEqual([]);
    expect(await logOf(requestOf(good, { ...deletion, subResource: 'status' }))).toEqual([]);
    const kind = { group: '', version: 'v1', kind: 'Pod' };
    expect(await logOf(requestOf(good, { ...deletion, kind }))).toEqual([]);
    const exempt = { exemptUsers: ['ada'] };
    expect(await logOf(requestOf(good, deletion), '/validate', exempt)).toEqual([]);
  });
});

test('the answer does not wait until the review is recorded', async () => {
  const record = () => new Promise<void>(() => {});
  expect((await post({ ...deps, record }, '/validate', reviewOf(requestOf(good)))).status).toBe(200);
});

describe('the routes', () => {
  const statusOf = async (path: string, pathSecrets: ReadonlyArray<string>, method = 'POST') => {
    const body = method === 'POST' ? { body: JSON.stringify(reviewOf(requestOf(good))) } : {};
    return (await createAdmission({ ...deps, pathSecrets }).request(path, { method, ...body })).status;
  };

  test('are under an unguessable segment, under two while one replaces the other, and nowhere else', async () => {
    const pathSecrets = ['kaefer-47', 'libelle-11'];
    expect(await statusOf('/kaefer-47/validate', pathSecrets)).toBe(200);
    expect(await statusOf('/libelle-11/mutate', pathSecrets)).toBe(200);
    for (const path of ['/validate', '/kaefer-4/validate', '/kaefer-47x/validate', '//validate', '/x/y/validate']) {
      expect(await statusOf(path, pathSecrets)).toBe(404);
    }
    for (const path of ['/validate', '//validate', '/undefined/validate']) {
      expect(await statusOf(path, [])).toBe(404);
      expect(await statusOf(path, [''])).toBe(404);
    }
  });

  test('read nothing of a request without the segment', async () => {
    const pulled: string[] = [];
    const body = new ReadableStream({ pull: () => void pulled.push('a piece') }, { highWaterMark: 0 });
    const request = new Request('http://x/guessed/validate', { method: 'POST', body, duplex: 'half' } as RequestInit);
    expect((await createAdmission(deps).request(request)).status).toBe(404);
    expect(pulled).toEqual([]);
  });

  test('include health and readiness; everything else is 404, also metrics', async () => {
    const app = createAdmission(deps);
    for (const base of ['', `/${SEGMENT}`]) {
      expect((await app.request(`${base}/healthz`)).status).toBe(200);
      expect((await app.request(`${base}/readyz`)).status).toBe(200);
      expect((await app.request(`${base}/metrics`)).status).toBe(404);
    }
    for (const path of ['/', '/x/healthz', `/${SEGMENT}`, `/${SEGMENT}/`, `/${SEGMENT}/validate/x`])
      expect((await app.request(path)).status).toBe(404);
  });

  test('of reviews accept only POST, and answer 405 to other methods', async () => {
    const app = createAdmission(deps);
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
      for (const verb of ['mutate', 'validate']) {
        const answer = await app.request(`/${SEGMENT}/${verb}`, { method });
        expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
        expect(await statusOf(`/guessed/${verb}`, [SEGMENT], method)).toBe(404);
        expect(await statusOf(`/${verb}`, [SEGMENT], method)).toBe(404);
      }
    }
  });
});

test('a client that disconnects while it sends is recorded as failed, and nothing crashes', async () => {
  const results: unknown[] = [];
  const record = async ({ result, error }: ReviewRecord) => void results.push([result, error]);
  const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('gone')) });
  const request = new Request(`http://x/${SEGMENT}/validate`, { method: 'POST', body, duplex: 'half' } as RequestInit);
  expect((await createAdmission({ ...deps, record }).request(request)).status).toBe(500);
  expect(results).toEqual([['failed', 'gone']]);
});

test('a function whose modules could not be loaded once answers 500 to that review, and decides the next', async () => {
  let loads = 0;
  const failing = {
    ...deps,
    get hash() {
      loads += 1;
      if (loads === 1) throw new Error('the disk did not answer');
      return deps.hash;
    },
  };
  const app = createAdmission(failing);
  const body = JSON.stringify(reviewOf(requestOf(good)));
  const statuses = [];
  for (let turn = 0; turn < 3; turn += 1)
    statuses.push((await app.request(`/${SEGMENT}/validate`, { method: 'POST', body })).status);
  expect(statuses).toEqual([500, 200, 200]);
  expect(loads).toBe(2);
});

test('with generateName there is no name yet: no look-up and no message uses it', async () => {
  const metadata = { name: undefined, generateName: 'billing-' };
  expect(
    await ask(deps, '/mutate', requestOf(objectOf('VirtualKey', GOOD.VirtualKey, metadata), { name: '' })),
  ).toMatchObject({ allowed: true });
  expect(
    await ask(deps, '/validate', requestOf(objectOf('VirtualKey', GOOD.VirtualKey, metadata), { name: '' })),
  ).toMatchObject({ allowed: true });
  const { status } = await ask(deps, '/mutate', requestOf(objectOf('VirtualKey', {}, metadata), { name: '' }));
  expect(status?.message.split('\n')).toEqual([
    'VirtualKey is invalid:',
    '- spec.keyAlias: Required value: add this field',
    '- spec.maxBudget: Required value: add this field, e.g. `maxBudget: "12.50"`',
    '- spec.budgetDuration: Required value: add this field, e.g. `budgetDuration: 30d`',
    '- spec.connectionRef: Required value: add this field',
  ]);
});
