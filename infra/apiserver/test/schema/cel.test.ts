// CEL expressions, as a real API server evaluates them.
import { describe, expect, test } from 'vitest';
import { CelError, compileCel } from '../../schema/cel.ts';
import { toCel } from '../../schema/cel-value.ts';

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
  ['[1, 2, 3].sum() == 6 && object.spec.list.map(x, x * 2).sum() == 12', true],
  ["'a-b-c'.split('-', 2)", ['a', 'b-c']],
  ["['a', 'b'].join('/')", 'a/b'],
  ["'ab'.matches('^(?i)A') || 'ab'.matches('(?i)^A')", true],
  ["'a1'.matches('^[[:alpha:]][[:digit:]]\\\\z')", true],
  ["timestamp('2026-11-21T12:00:00Z') - timestamp('2026-11-21T11:00:00Z') == duration('1h')", true],
];

describe('compileCel', () => {
  test.each(values)('%s', (expression, value) => {
    expect(
      compileCel(expression, 'condition')({ request: toCel(request), object: toCel(object), oldObject: null }),
    ).toEqual(value);
  });

  test.each([
    ['self.nope()', /nope/],
    ['frobnicate(self)', /frobnicate/],
    ['[1].transformList(self, self, self)', /transformList/],
    ["authorizer.group('').check('get')", /authorizer|group|check/],
    ["quantity('1').isInteger()", /quantity/],
    ["semver('1.0.0').major() == 1", /semver/],
    ["ip('::1').family() == 6", /ip/],
    ["cidr('10.0.0.0/8').prefixLength() == 8", /cidr/],
    ["url('https://a').getHost()", /url/],
    ["'a1'.find('[0-9]')", /find/],
    ['[1].max() == 1', /max/],
    ['self ==', /./],
    ['1 +', /./],
  ])('%s does not compile, and the message says what', (expression, words) => {
    expect(() => compileCel(expression, 'rule')).toThrow(CelError);
    expect(() => compileCel(expression, 'rule')).toThrow(words);
  });

  test.each([
    ['self.a', 'no such key: a'],
    ["self['b']", 'no such key: b'],
    ['[1][2]', 'index out of bounds: 2'],
    ['1 / (1 - 1)', 'division by zero'],
    ['9223372036854775807 + 1', 'integer overflow'],
    ["int('x')", "type conversion error from 'string' to 'int'"],
  ])('%s fails as in an API server: %s', (expression, words) => {
    expect(() => compileCel(expression, 'rule')({ self: {} })).toThrow(new CelError(words));
  });

  test('a variable that is not there does not compile either', () => {
    expect(() => compileCel('selff == 1', 'rule')).toThrow(/selff/);
    expect(() => compileCel("sets.contains(['a'], ['a'])", 'rule')).toThrow(/sets/);
    expect(() => compileCel("format.dns1123Label().validate('a')", 'rule')).toThrow(/format/);
    expect(compileCel('self.all(x, x > 0) && cel.bind(y, 2, y == 2)', 'rule')({ self: [1n] })).toBe(true);
  });

  test('an error on one side of || or && is absorbed by the other side', () => {
    expect(compileCel('self.missing == 1 || true', 'rule')({ self: {} })).toBe(true);
    expect(compileCel('false && self.missing == 1', 'rule')({ self: {} })).toBe(false);
  });
});
