import { expect, test } from 'vitest';
import { createAuthenticate } from '../../request/authenticate.ts';

const authenticate = createAuthenticate('secret');

test.each([
  {},
  { authorization: 'Bearer ' },
  { authorization: 'Bearer secre' },
  { authorization: 'Basic secret' },
  { authorization: 'secret' },
])('%j is nobody', (headers) => {
  expect(authenticate(headers)).toMatchObject({
    status: { code: 401, reason: 'Unauthorized', message: 'Unauthorized' },
  });
});

test('the holder of the token is an administrator', () => {
  expect(authenticate({ authorization: 'Bearer secret' })).toEqual({
    username: 'kubernetes-admin',
    groups: ['system:masters', 'system:authenticated'],
  });
});

test('the holder of the token may act as somebody else', () => {
  const headers = {
    authorization: 'Bearer secret',
    'impersonate-user': 'ada',
    'impersonate-group': 'dev, ops',
  };
  expect(authenticate(headers)).toEqual({ username: 'ada', groups: ['dev', 'ops', 'system:authenticated'] });
});
