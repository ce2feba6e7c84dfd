import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { membersOf, splice, spliceBytes } from '../../wire/json/json-splice.ts';

const NAMES = ['model', 'stream', 'stream_options', 'max_tokens', 'messages', '__proto__', 'ünï"\\\n', ''];

/** A prompt: long, with escapes anywhere, many in a row too. */
const longText = fc
  .array(fc.constantFrom('x'.repeat(63), 'word ', '\\', '"', '\\\\\\', 'ü', '\n', ']}'), {
    minLength: 20,
    maxLength: 200,
  })
  .map((parts) => JSON.stringify(parts.join('')));

/** An object as text: any names, repeated ones too, any JSON values, any blanks between the tokens. */
const objectText = fc
  .array(
    fc.record({
      name: fc.oneof(fc.constantFrom(...NAMES), fc.string({ unit: 'binary' })),
      escaped: fc.boolean(),
      value: fc.oneof(
        fc.json(),
        longText,
        fc.constantFrom('9007199254740993', '-1e400', '"\\u0061\\""', '[{"model":"x"}, "]}"]'),
      ),
      blanks: fc.array(fc.constantFrom('', ' ', '\n', '\r\n\t'), { minLength: 4, maxLength: 4 }),
    }),
    { maxLength: 8 },
  )
  .map((members) => {
    const texts = members.map(({ name, escaped, value, blanks: [a, b, c, d] }) => {
      const text = escaped ? `"${escapeAll(name)}"` : JSON.stringify(name);
      return `${a}${text}${b}:${c}${value}${d}`;
    });
    return ` {${texts.join(',')} } `;
  });

function escapeAll(text: string): string {
  return [...Array(text.length).keys()]
    .map((index) => `\\u${text.charCodeAt(index).toString(16).padStart(4, '0')}`)
    .join('');
}

test('the scanner finds the members that JSON.parse finds, whatever their values and blanks', () => {
  fc.assert(
    fc.property(objectText, (text) => {
      const found = new Map(
        membersOf(text).members.map(({ name, valueStart, end }) => [name, JSON.parse(text.slice(valueStart, end))]),
      );
      const parsed: object = JSON.parse(text);
      expect(new Map(Object.entries(parsed))).toEqual(found);
    }),
    { numRuns: runs(500) },
  );
});

test('a splice changes the given members and nothing else', () => {
  const changes = fc.record({
    set: fc.dictionary(fc.constantFrom('model', 'max_tokens', 'stream_options'), fc.json(), { maxKeys: 3 }),
    drop: fc.subarray(['__proto__', 'stream', '']),
    once: fc.subarray(['messages', 'model']),
  });
  fc.assert(
    fc.property(objectText, changes, (text, { set, drop, once }) => {
      const object = membersOf(text);
      const wanted = { set: Object.entries(set), drop: new Set(drop), once: new Set(once) };
      const spliced = splice(text, object, wanted);
      const expected = new Map<string, unknown>(Object.entries(JSON.parse(text)));
      for (const name of drop) expected.delete(name);
      for (const [name, value] of Object.entries(set)) expected.set(name, JSON.parse(value));
      expect(new Map(Object.entries(JSON.parse(spliced)))).toEqual(expected);
      const names = membersOf(spliced).members.map((member) => member.name);
      for (const name of [...once, ...Object.keys(set)]) {
        expect(names.filter((other) => other === name).length).toBeLessThanOrEqual(1);
      }
    }),
    { numRuns: runs(500) },
  );
});

const sentOf = (text: string) => {
  const bytes = Buffer.from(text);
  return { text, bytes, isAscii: bytes.length === text.length };
};

test('a splice of bytes is the splice of their text, in whatever language', () => {
  const changes = { set: [['model', '"ümläut"'] as const, ['new', '1'] as const], drop: new Set(['stream', '']) };
  const wellFormed = objectText.filter((text) => text.isWellFormed());
  fc.assert(
    fc.property(wellFormed, (text) => {
      const parts = spliceBytes(sentOf(text), membersOf(text), changes);
      const bytes = Buffer.concat(parts.map((part) => Buffer.from(part)));
      expect(bytes.toString()).toBe(splice(text, membersOf(text), changes));
    }),
    { numRuns: runs(500) },
  );
});

test('a splice without changes is the same text, byte for byte', () => {
  fc.assert(
    fc.property(objectText, (text) => {
      expect(splice(text, membersOf(text), {})).toEqual(text);
    }),
  );
});

test('integers beyond 2^53 and odd spacing survive a change beside them', () => {
  const text = '{ "seed" : 9007199254740993,"model":"a" , "x":1.0, "user":"\\u00e9é" }';
  const spliced = splice(text, membersOf(text), {
    set: [
      ['model', '"b"'],
      ['max_tokens', '5'],
    ],
  });
  expect(spliced).toBe('{ "seed" : 9007199254740993,"model":"b" , "x":1.0, "user":"\\u00e9é","max_tokens":5 }');
});

test('a splice leaves no second `model`, however its name is written', () => {
  const text = '{"model":"dear","messages":[],"mod\\u0065l":"dearer","model":"cheap"}';
  const spliced = splice(text, membersOf(text), { set: [['model', '"real"']] });
  expect(spliced).toBe('{"messages":[],"model":"real"}');
});

test('a name that occurs thirty thousand times is spliced in linear time, whatever letters are around it', () => {
  const repeated = '"stream":false,"a":1,'.repeat(30_000);
  for (const letters of ['e', 'é']) {
    const text = `{"${letters}":"${letters}",${repeated}"stream":true}`;
    const changes = { once: new Set(['stream']) };
    const parts = spliceBytes(sentOf(text), membersOf(text), changes);
    const spliced = splice(text, membersOf(text), changes);
    expect(Buffer.concat(parts.map((part) => Buffer.from(part))).toString()).toBe(spliced);
    expect(spliced).toBe(`{"${letters}":"${letters}",${'"a":1,'.repeat(30_000)}"stream":true}`);
  }
});
