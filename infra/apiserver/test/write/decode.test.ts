import { expect, test } from 'vitest';
import { isApiError } from '../../api-error.ts';
import { coreResources } from '../../resources/core-resources.ts';
import type { JsonObject } from '../../schema/json.ts';
import { decodeObject } from '../../write/decode.ts';

const configMaps = coreResources.find(({ plural }) => plural === 'configmaps');
if (configMaps === undefined) throw new Error('no config maps');

function decode(body: JsonObject, fieldValidation: 'Strict' | 'Warn' | 'Ignore' = 'Strict') {
  const warnings: string[] = [];
  const outcome =
    configMaps && decodeObject(configMaps, body, { fieldValidation, warn: (text) => void warnings.push(text) });
  return {
    object: isApiError(outcome) ? undefined : outcome,
    status: isApiError(outcome) ? outcome.status : undefined,
    warnings,
  };
}

test('what is null or empty counts as absent', () => {
  const { object } = decode({
    metadata: { name: 'a', labels: {}, finalizers: [], creationTimestamp: null, namespace: '' },
    data: null,
  });
  expect(object).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } });
});

test.each([
  [{ kind: 'Secret', metadata: { name: 'a' } }, 'Secret in version "v1" cannot be handled as a ConfigMap'],
  [
    { apiVersion: 'v2', metadata: { name: 'a' } },
    'the API version in the data (v2) does not match the expected API version (v1)',
  ],
  [
    { metadata: { name: 1 } },
    'ConfigMap in version "v1" cannot be handled as a ConfigMap: metadata.name: Invalid value: "integer": metadata.name in body must be of type string',
  ],
  [{ metadata: 'x' }, 'metadata in body must be of type object: "string"'],
  [{ metadata: { name: 'a' }, data: { a: 1 } }, 'data.a in body must be of type string: "integer"'],
  [
    { metadata: { name: 'a' }, dat: {}, immutabel: true },
    'strict decoding error: unknown field "dat", unknown field "immutabel"',
  ],
])('%j is refused with 400, and says why', (body, words) => {
  expect(decode(body).status).toMatchObject({
    code: 400,
    reason: 'BadRequest',
    message: expect.stringContaining(words),
  });
});

test('unknown fields are dropped, with a warning each or none', () => {
  expect(decode({ metadata: { name: 'a' }, dat: {} }, 'Warn')).toMatchObject({ warnings: ['unknown field "dat"'] });
  expect(decode({ metadata: { name: 'a' }, dat: {} }, 'Ignore')).toMatchObject({ warnings: [] });
  expect(decode({ metadata: { name: 'a' }, dat: {} }, 'Ignore').object).not.toHaveProperty('dat');
});

test('an empty entry of a Secret is an empty value', () => {
  const secrets = coreResources.find(({ plural }) => plural === 'secrets');
  const decoded =
    secrets &&
    decodeObject(secrets, { metadata: { name: 'a' }, data: { a: '' } }, { fieldValidation: 'Strict', warn: () => {} });
  expect(decoded).toMatchObject({ data: { a: '' } });
});
