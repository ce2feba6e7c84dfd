import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { duplicateMembers } from './body.ts';

test.each([
  ['{"a":1,"b":2}', []],
  ['{"a":1,"a":2,"a":3}', ['a']],
  ['{"metadata":{"labels":{"x":"a","x":"b"}}}', ['metadata.labels.x']],
  ['{"models":[{"name":"a"},{"name":"b","name":"c"}]}', ['models[1].name']],
  ['{"a":{"b":1},"b":{"b":1}}', []],
  ['{"a":"a","b":["a","a",{"a":1}]}', []],
  ['{ "a" : "}\\"{,:" ,\n"a":[ ] }', ['a']],
  ['[{"op":"add","op":"add"}]', ['[0].op']],
])('in %s the repeated members are %j', (text, wanted) => {
  expect(duplicateMembers(text)).toEqual(wanted);
});

test('what JSON.stringify writes never repeats a member', () => {
  fc.assert(fc.property(fc.json(), (text) => duplicateMembers(JSON.stringify(JSON.parse(text))).length === 0));
});
