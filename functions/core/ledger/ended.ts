// Whose lease had ended before the store forgot, and was booked only after its hold had been registered anew? It would count twice (LEDGER 5).
import type { Booked, Books, Reading } from '../ports/books.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Store, StoreCall } from '../ports/store.ts';
import { differencesIn, readExactly } from './exact.ts';
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
 * store the hold. Counters are made right, then the store is told: what is freed is spent. Costs one
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
    const work = books.withLedgerLock(deps.instanceUid, (reading) => tell(deps, epoch, some, booked, reading));
    await within(timer, SILENCE, 'PostgreSQL or the store', work);
  }
}

/** Only what the counters show already is freed: a call that a frozen store runs late may lose its adjustment. */
async function tell(
  { store }: EndedDependencies,
  epoch: number,
  ended: ReadonlyArray<Live>,
  booked: BookedOf,
  reading: Reading,
): Promise<void> {
  const charges = ended.flatMap(({ note }) => note.charges);
  const counters = [
    ...new Map(charges.map((of) => [`${of.window.start}/${of.window.end}/${of.scopeId}`, of])).values(),
  ];
  const adjusts = differencesIn(await readExactly(store, reading, counters));
  if (adjusts.length > 0) {
    await call(store, { ...NOTHING, epoch, adjusts });
    // Again at the next beat.
    if (differencesIn(await readExactly(store, reading, counters)).length > 0) return;
  }
  const registers = ended.map((live) => toRegistration(live, chargedOf(booked, live.id)));
  await call(store, { ...NOTHING, epoch, registers });
  for (const live of ended) live.isEnded = true;
}

async function call(store: Store, asked: StoreCall): Promise<void> {
  const answer = await store.call(asked);
  if (answer.outcome === 'epoch') throw new Error('the store is being rebuilt');
}
