// Answers to requests that are no review of a custom resource of the operator.
import { describe, expect, test } from 'vitest';
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
import { createAdmission } from '../app.ts';

const { cluster } = await createWorld();
const deps = depsOf(cluster);
const good = objectOf('VirtualKey');
const reviewOf = (request: object) => ({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });

describe('an object of the wrong shape is refused with a message', () => {
  const cases: ReadonlyArray<[string, unknown, RegExp]> = [
    ['no object', null, /^object: Invalid value: must be a VirtualKey/],
    ['a list', [], /^object: Invalid value: must be a VirtualKey/],
    ['no spec', { ...good, spec: undefined }, /^spec: Required value: add this field/],
    [
      'a spec that is a text',
      { ...good, spec: 'x' },
      /^spec: Invalid value: "x": must be a map; write its fields below it/,
    ],
    ['another kind', { ...good, kind: 'Pod' }, /^kind: Invalid value: "Pod": must be "VirtualKey"/],
    ['another version', { ...good, apiVersion: 'v1' }, /^apiVersion: Invalid value: "v1": must be "auth/],
    ['no metadata', { ...good, metadata: undefined }, /^metadata: Required value/],
    ['annotations that are a list', { ...good, metadata: { name: 'a', annotations: [] } }, /^metadata\.annotations: /],
    ['an empty spec', { ...good, spec: {} }, /^VirtualKey "billing" is invalid:\n- spec\./],
    [
      'very deep nesting',
      { ...good, spec: { metadata: nested(500) } },
      /^spec\.metadata\.value\S+: Too many: may not be nested deeper than 32 levels/,
    ],
  ];
  test.each(cases)('%s', async (_, object, message) => {
    for (const path of ['/mutate', '/validate']) {
      const { allowed, status } = await ask(deps, path, requestOf(good, { object }));
      expect(allowed).toBe(false);
      expect(status?.code).toBe(422);
      expect(status?.message).toMatch(message);
    }
  });
});

describe('a body that is no review is answered with 400 and the problem', () => {
  const { uid: _uid, ...anonymous } = requestOf(good);
  const cases: ReadonlyArray<[string, unknown, RegExp]> = [
    ['nothing', '', /empty/],
    ['truncated JSON', JSON.stringify(reviewOf(requestOf(good))).slice(0, -10), /not JSON/],
    ['no UTF-8 at its start', new Uint8Array([0xff, 0xfe, 0x7b]), /not an AdmissionReview/],
    ['no UTF-8', Buffer.from('{"kind":"AdmissionReview","a":"\xff"}', 'latin1'), /not UTF-8/],
    ['null', 'null', /not an AdmissionReview/],
    ['a list', [], /not an AdmissionReview/],
    ['an old version', { ...reviewOf(requestOf(good)), apiVersion: 'admission.k8s.io/v1beta1' }, /apiVersion/],
    ['another kind', { ...reviewOf(requestOf(good)), kind: 'Pod' }, /not an AdmissionReview/],
    ['no request', { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }, /request/],
    ['no uid', reviewOf(anonymous), /request\.uid/],
    ['an unknown operation', reviewOf({ ...requestOf(good), operation: 'PATCH' }), /request\.operation/],
    ['a user that is a text', reviewOf({ ...requestOf(good), userInfo: 'ada' }), /request\.userInfo/],
  ];
  test.each(cases)('%s', async (_, body, message) => {
    const reply = await post(deps, '/validate', body);
    expect(reply.status).toBe(400);
    const status = (await reply.json()) as { kind: string; code: number; message: string };
    expect(status).toMatchObject({ kind: 'Status', code: 400, reason: 'BadRequest' });
    expect(status.message).toMatch(message);
  });
});

describe('the size of a body', () => {
  test('up to 7 MiB is accepted: the API server sends an object of 3 MiB twice', async () => {
    const annotations = { big: 'x'.repeat(3 * 1024 * 1024) };
    const large = objectOf('Team', GOOD.Team, { annotations });
    expect((await ask(deps, '/validate', requestOf(large, { oldObject: large }))).allowed).toBe(true);
  });

  test('above that is answered with 413, with and without content-length', async () => {
    expect((await post(deps, '/validate', reviewOf({ uid: 'x'.repeat(7 * 1024 * 1024) }))).status).toBe(413);
    const chunk = new TextEncoder().encode(`{"kind":"AdmissionReview","a":"${'x'.repeat(1024 * 1024)}`);
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 1;
        controller.enqueue(chunk);
      },
    });
    const request = new Request(`http://x/${SEGMENT}/validate`, {
      method: 'POST',
      body: endless,
      duplex: 'half',
    } as RequestInit);
    expect((await createAdmission(deps).request(request)).status).toBe(413);
    expect(sent).toBeLessThan(12);
  });
});

function nested(depth: number): unknown {
  let value: unknown = 'x';
  for (let level = 0; level < depth; level += 1) value = { value };
  return value;
}
