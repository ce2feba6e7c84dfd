import { expect, test } from 'vitest';
import { isApiError } from '../../api-error.ts';
import { parseLabelSelector, toLabelSelector } from '../../request/selection.ts';

const chosen = (selector: string, labels: Record<string, string>) => {
  const parsed = parseLabelSelector(selector);
  if (isApiError(parsed)) throw new Error(parsed.status.message);
  return parsed(labels);
};

test.each([
  ['', {}, true],
  ['a=b', { a: 'b' }, true],
  ['a==b', { a: 'b' }, true],
  ['a=b', { a: 'c' }, false],
  ['a=', { a: '' }, true],
  ['a!=b', {}, true],
  ['a!=b', { a: 'b' }, false],
  ['a in (b, c)', { a: 'c' }, true],
  ['a in (b,c),d', { a: 'c' }, false],
  ['a notin (b)', {}, true],
  ['a notin (b)', { a: 'b' }, false],
  ['a', { a: '' }, true],
  ['!a', { a: '' }, false],
  ['! a', {}, true],
  ['n>3', { n: '4' }, true],
  ['n<3', { n: '4' }, false],
  ['toString', {}, false],
  ['example.com/a-b_c=x.y-z', { 'example.com/a-b_c': 'x.y-z' }, true],
])('the selector %j against %j is %j', (selector, labels, wanted) => {
  expect(chosen(selector, labels)).toBe(wanted);
});

test.each(['a in', 'a in (', '=b', 'a=b c', 'a=b;c', '(a)', 'a!!b'])(
  'the selector %j is refused with 400',
  (selector) => {
    expect(parseLabelSelector(selector)).toMatchObject({ status: { code: 400 } });
  },
);

test.each([
  [undefined, {}, true],
  [{}, { a: 'b' }, true],
  [{ matchLabels: { a: 'b' } }, { a: 'b', c: 'd' }, true],
  [{ matchLabels: { a: 'b' } }, {}, false],
  [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] }, { a: 'b' }, true],
  [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b'] }] }, {}, true],
  [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, {}, false],
  [{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, {}, true],
])('the selector object %j against %j is %j', (selector, labels, wanted) => {
  expect(toLabelSelector(selector)(labels)).toBe(wanted);
});
