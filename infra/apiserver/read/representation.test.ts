import { expect, test } from 'vitest';
import { negotiate } from './representation.ts';

const none = new URLSearchParams();

test.each([
  ['', 'object', 'application/json'],
  ['*/*', 'object', 'application/json'],
  ['application/yaml', 'object', 'application/yaml'],
  ['application/vnd.kubernetes.protobuf,application/json', 'object', 'application/json'],
  [
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
    'table',
    'application/json',
  ],
  ['application/json;as=Table;v=v9;g=meta.k8s.io, application/json', 'object', 'application/json'],
  [
    'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    'metadata',
    'application/json',
  ],
])('who accepts %j gets a %s as %s', (accept, shape, encoding) => {
  expect(negotiate(accept, none)).toMatchObject({ shape, encoding });
});

test('who accepts protobuf alone is told what there is', () => {
  expect(negotiate('application/vnd.kubernetes.protobuf', none)).toMatchObject({
    status: { code: 406, reason: 'NotAcceptable' },
  });
});
