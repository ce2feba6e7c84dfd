import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HoldNote } from '#core/ports/store.ts';
import { noteText, settlementText, toNote, toSettlement, windowText } from './note-text.ts';

const chargeOf = fc.record({
  scopeId: fc.uuid(),
  window: fc.record({ start: fc.nat(), end: fc.nat() }),
});
const noteOf: fc.Arbitrary<HoldNote> = fc.record({
  ...{ charges: fc.array(chargeOf, { maxLength: 11 }), model: fc.string(), identifier: fc.string() },
});
const namesOf = ({ charges }: HoldNote): string => charges.map(({ scopeId }) => scopeId).join('\n');

test('the note of a hold survives the round trip, whatever its model is called', () => {
  fc.assert(
    fc.property(noteOf, (note) => {
      expect(toNote(namesOf(note), noteText(note))).toEqual(note);
    }),
  );
});

test('notes of the same scopes keep their own models', () => {
  fc.assert(
    fc.property(
      noteOf,
      fc.array(fc.record({ model: fc.constantFrom('a', 'b'), identifier: fc.constantFrom('a', 'b') })),
      (note, names) => {
        for (const each of names) {
          const other = { ...note, ...each };
          expect(toNote(namesOf(note), noteText(other))).toEqual(other);
        }
      },
    ),
  );
});

test('the note of a settlement survives the round trip', () => {
  const tokens = fc.record({ input: fc.nat(), output: fc.nat(), cachedInput: fc.nat(), cacheWrite: fc.nat() });
  const kind = fc.constantFrom('settled', 'correction', 'expired');
  const settlementOf = fc.record({
    kind,
    tokens,
    model: fc.string(),
    identifier: fc.string(),
    estimated: fc.boolean(),
    settledAt: fc.nat(),
  });
  fc.assert(
    fc.property(settlementOf, noteOf, (settlement, note) => {
      const whole = { ...settlement, charges: note.charges };
      expect(toSettlement(settlementText(whole), settlement.kind, note)).toEqual(whole);
    }),
  );
});

test('a scope id that would read as two is refused', () => {
  const window = { start: 0, end: 1 };
  expect(() => windowText({ scopeId: 'a\nb', window })).toThrow('must not contain a tab');
});
