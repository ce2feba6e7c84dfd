// Do CEL expressions mean here what they mean to an API server?
import { describe, expect, test } from 'vitest';
import { CelError, compileCel } from './cel.ts';

const request = {
  operation: 'UPDATE',
  name: 'a',
  userInfo: { username: 'system:serviceaccount:x:y', groups: ['g'] },
  resource: { group: 'apps', version: 'v1', resource: 'deployments' },
};
const object = {
  metadata: { name: 'a', labels: { app: 'web' } },
  spec: { replicas: 3, ratio: 0.5, list: [1, 2, 3], none: null },
};

// What a webhook's matchConditions and a rule's messages are made of.
const values: ReadonlyArray<[expression: string, value: unknown]> = [
  ["request.operation == 'UPDATE' && !(request.userInfo.username.startsWith('system:node:'))", true],
  ["!('gone' in request.userInfo.groups)", true],
  ["has(object.metadata.labels) && 'app' in object.metadata.labels", true],
  ["object.metadata.?annotations['x'].orValue('none')", 'none'],
  ["object.metadata.labels['app']", 'web'],
  ['oldObject == null', true],
  ['object.spec.replicas + 1', 4n],
  ['object.spec.ratio * 2.0', 1],
  ['object.spec.list.map(x, x * 2).filter(x, x > 2)', [4n, 6n]],
  ['object.spec.list.exists_one(x, x == 2) && object.spec.list.all(x, x < 4)', true],
  ['object.spec.none == null', true],
  ['has(object.spec.none)', true],
  ['has(object.spec.constructor) || has(object.spec.__proto__)', false],
  ["'a-b-c'.split('-', 2)", ['a', 'b-c']],
  ["['a', 'b'].join('/')", 'a/b'],
  ["'aXbX'.replace('X', '-', 1)", 'a-bX'],
  ["'Äa'.lowerAscii()", 'Äa'],
  ["'🙂b'.charAt(1)", 'b'],
  ["'ab'.matches('^(?i)A') || 'ab'.matches('(?i)^A')", true],
  ["'a1'.matches('^[[:alpha:]][[:digit:]]\\\\z')", true],
  ["'1.2.3'.findAll('[0-9]')", ['1', '2', '3']],
  ["string(duration('90m'))", '5400s'],
  ["timestamp('2026-11-21T12:00:00Z') - timestamp('2026-11-21T11:00:00Z') == duration('1h')", true],
  ["quantity('1.5Gi').compareTo(quantity('1536Mi'))", 0n],
  ["quantity('500m').isLessThan(quantity('1')) && quantity('-1').sign() == -1", true],
  ["isQuantity('1GiB')", false],
  ["url('https://a.b:443/c?d=e&d=f').getHost()", 'a.b:443'],
  ["url('https://a.b/c?d=e&d=f').getQuery()['d']", ['e', 'f']],
  ["cidr('fd00::/8').containsIP('fd12::1') && !cidr('10.0.0.0/8').containsIP('11.0.0.1')", true],
  ["cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')", true],
  ["semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) && semver('1.10.0').compareTo(semver('1.9.9')) > 0", true],
  ['sets.equivalent([1, 2, 2], [2, 1])', true],
];

describe('compileCel', () => {
  test.each(values)('%s', (expression, value) => {
    expect(compileCel(expression)({ request, object, oldObject: null })).toEqual(value);
  });

  test.each([
    ['self.nope()', /nope/],
    ['frobnicate(self)', /frobnicate/],
    ['[1].transformList(i, v, v)', /transformList/],
    ["authorizer.group('').check('get')", /authorizer|group|check/],
    ['self ==', /./],
    ['1 +', /./],
  ])('%s does not compile, and the message says what', (expression, words) => {
    expect(() => compileCel(expression)).toThrow(CelError);
    expect(() => compileCel(expression)).toThrow(words);
  });

  test.each([
    ['self.a', 'no such key: a'],
    ["self['b']", 'no such key: b'],
    ['[1][2]', 'index out of bounds: 2'],
    ['1 / (1 - 1)', 'division by zero'],
    ['9223372036854775807 + 1', 'integer overflow'],
    ["int('x')", "type conversion error from 'string' to 'int'"],
  ])('%s fails as in an API server: %s', (expression, words) => {
    expect(() => compileCel(expression)({ self: {} })).toThrow(new CelError(words));
  });

  test('a variable that is not there does not compile either, where the variables are known', () => {
    expect(() => compileCel('selff == 1', ['self'])).toThrow(/selff/);
    expect(compileCel('self.all(x, x > 0) && cel.bind(y, 2, y == 2)', ['self'])({ self: [1] })).toBe(true);
  });

  test('an error on one side of || or && is absorbed by the other side', () => {
    expect(compileCel('self.missing == 1 || true')({ self: {} })).toBe(true);
    expect(compileCel('false && self.missing == 1')({ self: {} })).toBe(false);
  });
});
