// What does the script answer about what it has counted? Surveys, records to book, counters that are loaded.
import type { EntryKind } from '#core/ports/books.ts';
import type { HoldNote, Part, Store, Survey, Unbooked, UnbookedRecord } from '#core/ports/store.ts';
import { listOf, textOf } from './texts.ts';

const KINDS: Readonly<Record<string, EntryKind>> = {
  settled: 'settled',
  expired: 'expired',
  correction: 'correction',
};

function toPart([id, kind, cost]: ReadonlyArray<unknown>): Part {
  const known = KINDS[textOf(kind)];
  if (known === undefined) throw new Error(`the store keeps something of the kind "${kind}"`);
  return { id: textOf(id), kind: known, cost: BigInt(textOf(cost)) };
}

export function toSurvey([, now, counters]: ReadonlyArray<unknown>): Survey {
  const found = listOf(counters).map((counter) => {
    const [spent, parts] = listOf(counter);
    return {
      spent: spent === '' ? undefined : BigInt(textOf(spent)),
      parts: listOf(parts).map((part) => toPart(listOf(part))),
    };
  });
  return { now: Number(textOf(now)), counters: found };
}

export function toUnbooked([, records, calls, epoch]: ReadonlyArray<unknown>): Unbooked {
  return {
    records: listOf(records).map((record) => toRecord(listOf(record))),
    calls: new Map(listOf(calls).map((one) => [textOf(listOf(one)[0]), Number(listOf(one)[1])])),
    epoch: Number(textOf(epoch)),
  };
}

/** The texts were written by `fromNote` and `fromSettleNote`, and kept as they were. */
function toRecord([id, kind, cost, said, since, note]: ReadonlyArray<unknown>): UnbookedRecord {
  const hold: HoldNote = note === '' ? { charges: [], model: '', identifier: '' } : JSON.parse(textOf(note));
  const part = toPart([id, kind, cost]);
  const record = { ...part, hold, since: Number(textOf(since)) };
  if (said === '') return record;
  return { ...record, said: { ...JSON.parse(textOf(said)), kind: part.kind, charges: hold.charges } };
}

export function toLoaded([, members, next]: ReadonlyArray<unknown>): Awaited<ReturnType<Store['loaded']>> {
  const counters = listOf(members).map((member) => {
    const [window, scopeId] = listOf(member);
    const [start, end] = textOf(window).split(':').map(Number);
    return { scopeId: textOf(scopeId), window: { start: start ?? 0, end: end ?? 0 } };
  });
  return next === '' ? { counters } : { counters, next: Number(textOf(next)) };
}
