// Whose lease had ended before the store forgot, and was booked only after its hold had been registered anew? It would count twice (LEDGER 5).
import type { Booked, Books, Reading } from '../ports/books.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Store } from '../ports/store.ts';
import { readExactly } from './exact.ts';
import type { Live, Lives } from './lives.ts';
import { chargedOf, toRegistration } from './registration.ts';
import { within } from './within.ts';

export interface EndedDependencies {
  readonly instanceUid: string;
  readonly books: Books;
  readonly store: Store;
  readonly lives: Lives;
  readonly timer: Timer;
}

const SILENCE: Millis = 2000;
/** With their counters they fit one call. */
const MOST = 16;
const NOTHING = { settles: [], releases: [], renewals: [], loads: [], holds: [] } as const;

type BookedOf = ReadonlyMap<string, ReadonlyArray<Booked>>;

/**
 * Another process had heard of the end and had not booked it when this one registered the hold: PostgreSQL has the charge, the
 * store the hold. The store is told, and its counters are made right in the same step: what is freed is spent. Costs one
 * question while a hold lives that went through a rebuild, and nothing else.
 */
export async function tellEnded(deps: EndedDependencies, epoch: number): Promise<void> {
  const { books, timer, lives } = deps;
  const moved = [...lives.values()].filter((live) => live.isMoved && !live.isCounted && !live.isEnded);
  if (moved.length === 0) return;
  const booked = await within(timer, SILENCE, 'PostgreSQL', books.bookedOf(moved.map(({ id }) => id)));
  const ended = moved.filter(({ id }) => chargedOf(booked, id) !== undefined);
  for (let at = 0; at < ended.length; at += MOST) {
    const some = ended.slice(at, at + MOST);
    const work = books.exclusively(deps.instanceUid, (reading) => tell(deps, epoch, some, booked, reading));
    await within(timer, SILENCE, 'PostgreSQL or the store', work);
  }
}

async function tell(
  { store }: EndedDependencies,
  epoch: number,
  ended: ReadonlyArray<Live>,
  booked: BookedOf,
  reading: Reading,
): Promise<void> {
  const charges = ended.flatMap(({ note }) => note.charges);
  const counters = new Map(charges.map((of) => [`${of.window.start}/${of.window.end}/${of.scopeId}`, of]));
  const exact = await readExactly(store, reading, [...counters.values()]);
  const adjusts = exact.flatMap(({ scopeId, window, shown, spent, load }) =>
    shown === undefined || shown === spent
      ? []
      : [{ scopeId, window, by: spent - shown, deadline: load.deadline ?? 0 }],
  );
  const registers = ended.map((live) => toRegistration(live, chargedOf(booked, live.id)));
  const answer = await store.call({ ...NOTHING, epoch, registers, adjusts });
  if (answer.outcome === 'epoch') throw new Error('the store is being rebuilt');
  for (const live of ended) live.isEnded = true;
}
