// JSON patches and merge patches, as their RFCs describe them.
import { describe, expect, test } from 'vitest';
import { jsonPatch, mergePatch, PatchError } from '../../codec/patches.ts';
import type { JsonObject } from '../../schema/json.ts';

// RFC 6902, appendix A, and what an attacker or a typo may send.
const patches: ReadonlyArray<[name: string, document: JsonObject, patch: unknown, result: JsonObject | 400 | 422]> = [
  ['adds a member', { foo: 'bar' }, [{ op: 'add', path: '/baz', value: 'qux' }], { baz: 'qux', foo: 'bar' }],
  ['adds an element', { foo: ['a', 'b'] }, [{ op: 'add', path: '/foo/1', value: 'x' }], { foo: ['a', 'x', 'b'] }],
  ['adds at the end', { foo: ['a'] }, [{ op: 'add', path: '/foo/-', value: ['b'] }], { foo: ['a', ['b']] }],
  ['adds over what is there', { foo: 1 }, [{ op: 'add', path: '/foo', value: 2 }], { foo: 2 }],
  ['removes a member', { baz: 'qux', foo: 'bar' }, [{ op: 'remove', path: '/baz' }], { foo: 'bar' }],
  ['removes an element', { foo: ['a', 'b'] }, [{ op: 'remove', path: '/foo/0' }], { foo: ['b'] }],
  ['replaces', { foo: { a: 1 } }, [{ op: 'replace', path: '/foo', value: null }], { foo: null }],
  ['moves a member', { a: { x: 1 }, b: {} }, [{ op: 'move', from: '/a/x', path: '/b/y' }], { a: {}, b: { y: 1 } }],
  ['moves an element', { a: [1, 2, 3] }, [{ op: 'move', from: '/a/0', path: '/a/2' }], { a: [2, 3, 1] }],
  [
    'copies deeply',
    { a: { x: [1] } },
    [
      { op: 'copy', from: '/a', path: '/b' },
      { op: 'add', path: '/b/x/-', value: 2 },
    ],
    { a: { x: [1] }, b: { x: [1, 2] } },
  ],
  [
    'tests and continues',
    { a: [1, { b: 2 }] },
    [
      { op: 'test', path: '/a', value: [1, { b: 2 }] },
      { op: 'remove', path: '/a' },
    ],
    {},
  ],
  [
    'escapes in pointers',
    { 'a/b': 1, 'm~n': 2 },
    [
      { op: 'remove', path: '/a~1b' },
      { op: 'replace', path: '/m~0n', value: 3 },
    ],
    { 'm~n': 3 },
  ],
  ['an empty member name', { '': 1 }, [{ op: 'replace', path: '/', value: 2 }], { '': 2 }],
  ['replaces the whole', { a: 1 }, [{ op: 'replace', path: '', value: { b: 2 } }], { b: 2 }],
  ['__proto__ is out of reach', {}, [{ op: 'add', path: '/__proto__', value: 1 }], 422],
  ['a test that fails', { a: 1 }, [{ op: 'test', path: '/a', value: '1' }], 422],
  ['a parent that is not there', { a: 1 }, [{ op: 'add', path: '/b/c', value: 1 }], 422],
  ['what is removed is not there', { a: 1 }, [{ op: 'remove', path: '/b' }], 422],
  ['replaced is not there', { a: 1 }, [{ op: 'replace', path: '/b', value: 1 }], 422],
  ['an index beyond the end', { a: [1] }, [{ op: 'add', path: '/a/2', value: 1 }], 422],
  ['an index with a leading zero', { a: [1, 2] }, [{ op: 'add', path: '/a/01', value: 1 }], 422],
  [
    'members of Object.prototype are not there',
    { a: 1 },
    [{ op: 'add', path: '/constructor/prototype/x', value: 1 }],
    422,
  ],
  ['a move into itself', { a: { b: 1 } }, [{ op: 'move', from: '/a', path: '/a/b' }], 422],
  ['the result is no object', { a: 1 }, [{ op: 'replace', path: '', value: 1 }], 422],
  ['no list', { a: 1 }, { op: 'add' }, 400],
  ['an unknown operation', { a: 1 }, [{ op: 'spin', path: '/a' }], 400],
  ['no value', { a: 1 }, [{ op: 'add', path: '/a' }], 400],
  ['no pointer', { a: 1 }, [{ op: 'remove', path: 'a' }], 400],
  ['no from', { a: 1 }, [{ op: 'copy', path: '/a' }], 400],
];

describe('a JSON patch', () => {
  test.each(patches)('%s', (_, document, patch, result) => {
    const before = structuredClone(document);
    if (typeof result !== 'number') expect(jsonPatch(document, patch)).toEqual(result);
    else expect(codeOf(() => jsonPatch(document, patch))).toBe(result);
    expect(document).toEqual(before);
  });
});

function codeOf(step: () => unknown): number | undefined {
  try {
    step();
  } catch (error) {
    if (error instanceof PatchError) return error.code;
    throw error;
  }
  return undefined;
}

// RFC 7386, appendix A.
const merges: ReadonlyArray<[target: JsonObject, patch: JsonObject, result: JsonObject]> = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  [{ a: 1 }, JSON.parse('{"__proto__":{"b":1}}'), JSON.parse('{"a":1,"__proto__":{"b":1}}')],
];

describe('a merge patch', () => {
  test.each(merges)('%j with %j is %j', (target, patch, result) => {
    const before = structuredClone(target);
    expect(JSON.stringify(mergePatch(target, patch))).toBe(JSON.stringify(result));
    expect(target).toEqual(before);
  });
});
