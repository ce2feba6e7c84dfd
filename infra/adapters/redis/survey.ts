// The script's replies about its contents: surveys, unbooked records, loaded counters.
import type { EntryKind } from '#core/ports/books.ts';
import type { Part, Store, Survey, Unbooked, UnbookedRecord } from '#core/ports/store.ts';
import { toNote, toSettlement, windowOf } from './note-text.ts';
import { listOf, textOf } from './texts.ts';

const KINDS: Readonly<Record<string, EntryKind>> = {
  settled: 'settled',
  expired: 'expired',
  correction: 'correction',
};

function toPart([id, kind, cost]: ReadonlyArray<unknown>): Part {
  const known = KINDS[textOf(kind)];
  if (known === undefined) throw new Error(`the store returned an unknown kind "${kind}"`);
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

function toRecord([id, kind, cost, settlement, since, names, note]: ReadonlyArray<unknown>): UnbookedRecord {
  const hold = toNote(textOf(names), textOf(note));
  const part = toPart([id, kind, cost]);
  const record = { ...part, hold, since: Number(textOf(since)) };
  return settlement === '' ? record : { ...record, settlement: toSettlement(textOf(settlement), part.kind, hold) };
}

export function toLoaded([, members, next]: ReadonlyArray<unknown>): Awaited<ReturnType<Store['loaded']>> {
  const counters = listOf(members).map((member) => {
    const [window, scopeId] = listOf(member);
    return { scopeId: textOf(scopeId), window: windowOf(textOf(window)) };
  });
  return next === '' ? { counters } : { counters, next: Number(textOf(next)) };
}
