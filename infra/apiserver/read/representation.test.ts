import { expect, test } from 'vitest';
import { negotiate } from './representation.ts';

const none = new URLSearchParams();

test.each([
  ['', 'object'],
  ['*/*', 'object'],
  ['application/yaml, */*', 'object'],
  ['application/vnd.kubernetes.protobuf,application/json', 'object'],
  [
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
    'table',
  ],
  ['application/json;as=Table;v=v9;g=meta.k8s.io, application/json', 'object'],
  [
    'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    'metadata',
  ],
])('who accepts %j gets a %s', (accept, shape) => {
  expect(negotiate(accept, none)).toMatchObject({ shape });
});

test.each(['application/vnd.kubernetes.protobuf', 'application/yaml'])(
  'who accepts %s alone is told what there is',
  (accept) => {
    expect(negotiate(accept, none)).toMatchObject({
      status: { code: 406, reason: 'NotAcceptable' },
    });
  },
);
