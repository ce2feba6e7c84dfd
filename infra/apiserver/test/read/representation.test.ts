import { expect, test } from 'vitest';
import { negotiate } from '../../read/representation.ts';

const none = new URLSearchParams();

test.each([
  ['', false],
  ['*/*', false],
  ['application/yaml, */*', false],
  ['application/vnd.kubernetes.protobuf,application/json', false],
  [
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json',
    true,
  ],
  ['application/json;as=Table;v=v9;g=meta.k8s.io, application/json', false],
  [
    'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    false,
  ],
])('who accepts %j gets a table: %s', (accept, isTable) => {
  expect(negotiate(accept, none)).toMatchObject({ isTable });
});

test.each(['application/vnd.kubernetes.protobuf', 'application/yaml'])(
  'who accepts %s alone is told what there is',
  (accept) => {
    expect(negotiate(accept, none)).toMatchObject({
      status: { code: 406, reason: 'NotAcceptable' },
    });
  },
);
