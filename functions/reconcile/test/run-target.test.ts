// Targets of runs: an event names what to look at. Any other request is refused, with the cause.
import { describe, expect, test } from 'vitest';
import { toRunTarget } from '../run-target.ts';

const posted = (headers: Readonly<Record<string, string>>, body = '') => ({
  header: (name: string) => headers[name],
  body,
});
const binary = (type: string, data: unknown, more: object = {}) =>
  toRunTarget(
    posted(
      { 'content-type': 'application/json', 'ce-specversion': '1.0', 'ce-type': type, ...more },
      JSON.stringify(data),
    ),
  );
const at = (kind: string, name = 'chat') => ({ ok: true, value: { look: 'at', kind, namespace: 'team-a', name } });
const everywhere = { ok: true, value: { look: 'everywhere' } };

describe('a resync is requested by', () => {
  test.each([
    ['an empty body', {}],
    ['an empty body with the content type of JSON', { 'content-type': 'application/json' }],
    ['an empty body with the content type of a CloudEvent', { 'content-type': 'application/cloudevents+json' }],
    ['an empty body of any other type', { 'content-type': 'application/x-www-form-urlencoded' }],
  ])('%s', (_, headers) => {
    expect(toRunTarget(posted(headers))).toEqual(everywhere);
    expect(toRunTarget(posted(headers, ' \n'))).toEqual(everywhere);
  });

  test("Knative's PingSource, with data or without", () => {
    expect(binary('dev.knative.sources.ping', { message: 'hello' })).toEqual(everywhere);
    expect(toRunTarget(posted({ 'ce-specversion': '1.0', 'ce-type': 'dev.knative.sources.ping' }))).toEqual(everywhere);
  });
});

describe('one object is named by', () => {
  test.each(['VirtualKey', 'GatewayInstance', 'User', 'Team'])("Knative's ApiServerSource, for a %s", (kind) => {
    for (const verb of ['add', 'update', 'delete']) {
      const reference = { apiVersion: 'x', kind, namespace: 'team-a', name: 'chat' };
      expect(binary(`dev.knative.apiserver.ref.${verb}`, reference)).toEqual(at(kind));
    }
  });

  test('a trigger of the admission webhook', () => {
    expect(binary('dev.gateway-operator.trigger', { kind: 'User', namespace: 'team-a', name: 'alice' })).toEqual(
      at('User', 'alice'),
    );
  });

  test.each([
    ['Deployment', 'main-gateway', 'main'],
    ['Service', 'main-serving', 'main'],
    ['Deployment', 'a-gateway-gateway', 'a-gateway'],
  ])('an event about an object that runs a gateway is an event about its instance: %s %s', (kind, name, instance) => {
    const event = binary('dev.knative.apiserver.ref.update', { kind, namespace: 'team-a', name });
    expect(event).toEqual(at('GatewayInstance', instance));
  });

  test.each([
    ['Deployment', 'web'],
    ['Service', 'main-gateway'],
    ['StatefulSet', 'main-gateway'],
  ])('an event about another %s needs no work', (kind, name) => {
    const event = binary('dev.knative.apiserver.ref.update', { kind, namespace: 'team-a', name });
    expect(event).toEqual({ ok: true, value: { look: 'nowhere' } });
  });

  test('an event about an object of another kind needs no work', () => {
    expect(binary('dev.knative.apiserver.ref.add', { kind: 'Pod', namespace: 'a', name: 'b' })).toEqual({
      ok: true,
      value: { look: 'nowhere' },
    });
  });
});

describe('a request that is no event is refused with its problem', () => {
  test.each([
    [
      'a body without an event',
      toRunTarget(posted({ 'content-type': 'application/json' }, '{"a":1}')),
      /neither empty .* nor a CloudEvent/,
    ],
    ['an event of another version', binary('x', {}, { 'ce-specversion': '0.3' }), /must be "1.0"/],
    [
      'an event without a version',
      toRunTarget(posted({ 'ce-type': 'dev.knative.sources.ping' }, '{}')),
      /ce-specversion/,
    ],
    ['an unknown type', binary('com.example.order', {}), /"com.example.order": must be/],
    [
      'data that is not JSON',
      toRunTarget(posted({ 'ce-specversion': '1.0', 'ce-type': 'dev.gateway-operator.trigger' }, '{')),
      /names no object/,
    ],
    ['data without a name', binary('dev.gateway-operator.trigger', { kind: 'User' }), /name/],
    [
      'an invalid name',
      binary('dev.gateway-operator.trigger', { kind: 'User', namespace: 'a', name: 'x'.repeat(254) }),
      /name/,
    ],
    [
      'an object without a namespace',
      binary('dev.gateway-operator.trigger', { kind: 'User', name: 'a' }),
      /without a namespace/,
    ],
  ])('%s', (_, scope, words) => {
    expect(scope).toMatchObject({ ok: false, failure: expect.stringMatching(words) });
  });

  test('hostile input of any kind is a refusal, never an exception', () => {
    const hostile = [
      'null',
      '[]',
      '"x"',
      '0',
      '{"specversion":1}',
      '\u0000',
      '{"__proto__":{"type":"x"}}',
      '['.repeat(5000),
    ];
    for (const body of hostile) {
      for (const contentType of ['application/cloudevents+json', 'application/json', 'text/plain']) {
        expect(toRunTarget(posted({ 'content-type': contentType }, body))).toMatchObject({
          ok: false,
          failure: expect.any(String),
        });
      }
      expect(
        toRunTarget(posted({ 'ce-specversion': '1.0', 'ce-type': 'dev.knative.apiserver.ref.add' }, body)).ok,
      ).toBe(false);
    }
  });
});
