// Look-ups of host names that do not wait for names of others: the platform does only a few at the same time, and one that nobody answers takes seconds.
import dns from 'node:dns';
import type { Millis } from '#core/ports/money.ts';
import { createLru } from '../../../functions/core/caches/lru.ts';

type Lookup = typeof dns.lookup;
type Options = Readonly<dns.LookupOptions>;
type Callback = (error: NodeJS.ErrnoException | null, address: string | dns.LookupAddress[], family: number) => void;

/** A look-up that takes longer makes its name a slow one. */
const SLOW: Millis = 1000;
const MAX_NAMES = 10_000;

export interface LookupDependencies {
  readonly lookup: (name: string, options: Options, callback: Callback) => void;
  readonly now: () => Millis;
  /** How many look-ups the platform does at the same time: half of UV_THREADPOOL_SIZE. */
  readonly atOnce: number;
}

/**
 * Names that were answered soon the last time are looked up immediately. Of all others at most all but one are looked up at the same
 * time, and of those that were slow the last time one, in order of arrival. The same question, asked again meanwhile, gets the same answer.
 */
export function createNameLookup({ lookup, now, atOnce }: LookupDependencies) {
  const wasSlow = createLru<{ readonly isSlow: boolean }>(MAX_NAMES);
  const pending = new Map<string, Callback[]>();
  const slow = createLane(1);
  const unknown = createLane(Math.max(1, atOnce - 2));

  const start = (name: string, options: Options, question: string, done: () => void): void => {
    const began = now();
    lookup(name, options, (...answer) => {
      wasSlow.set(name, { isSlow: now() - began > SLOW });
      const callbacks = pending.get(question) ?? [];
      pending.delete(question);
      done();
      for (const callback of callbacks) callback(...answer);
    });
  };

  return (name: string, options: Options, callback: Callback): void => {
    const question = JSON.stringify([name, options]);
    const others = pending.get(question);
    if (others !== undefined) {
      others.push(callback);
      return;
    }
    pending.set(question, [callback]);
    const last = wasSlow.get(name);
    const begin = (done: () => void) => start(name, options, question, done);
    if (last === undefined) unknown(begin);
    else if (last.isSlow) slow(begin);
    else begin(() => undefined);
  };
}

/** Runs at most so many works at the same time, the others in order of arrival. */
function createLane(max: number) {
  const waiting: Array<(done: () => void) => void> = [];
  let running = 0;
  const next = (): void => {
    while (running < max) {
      const work = waiting.shift();
      if (work === undefined) return;
      running += 1;
      work(() => {
        running -= 1;
        next();
      });
    }
  };
  return (work: (done: () => void) => void): void => {
    waiting.push(work);
    next();
  };
}

/** From now on, all connections of this process that name a host (PostgreSQL, Redis, HTTP) look it up like this. */
export function boundNameLookups(): void {
  const { lookup } = dns;
  const threads = Number(process.env.UV_THREADPOOL_SIZE) || 4;
  const bounded = createNameLookup({
    lookup: (name, options, callback) => lookup(name, options, callback),
    now: () => performance.now(),
    atOnce: threads / 2,
  });
  const replacement = (name: string, options: Options | number | Callback | undefined, callback?: Callback): void => {
    if (typeof options === 'function') bounded(name, {}, options);
    else if (callback !== undefined)
      bounded(name, typeof options === 'number' ? { family: options } : (options ?? {}), callback);
  };
  dns.lookup = Object.assign(replacement, { __promisify__: lookup.__promisify__ }) as Lookup;
}
