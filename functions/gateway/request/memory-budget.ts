// Room in a process's memory for requests: how many it serves, and the bytes of bodies and plain replies that it keeps,
// concurrently.

import { createLru, type Lru } from '#core/caches/lru.ts';
import { type JsonSize, LONG_TEXT, sizeOfJson } from '#core/json/json-limits.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { HttpExchange, TurnOwner } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ProcessMemory } from '#core/ports/platform.ts';
import type { KeyPolicy } from '#core/ports/policy.ts';

const MIB = 1024 * 1024;
/** The largest body that any process accepts, and the largest reply. */
export const MAX_BODY = 32 * MIB;
const MAX_REPLY = 2 * MAX_BODY;
/**
 * A request's own memory, with its connections and what a stream keeps: measured, 100 to 300 KiB, and at most half of
 * it in the heap.
 */
const REQUEST_BYTES = MIB / 2;
/** A short body is kept together with its text, in up to two bytes a letter. */
const SHORT_BODY_COPIES = 3;
/** A share up to this size takes the last eighth of the room, which larger ones leave free. */
const SMALL_SHARE = SHORT_BODY_COPIES * LONG_TEXT;
const KEPT_FOR_SMALL = 1 / 8;
/**
 * Others always find room: a key has at most three times the requests, and the bytes, that it leaves free; the keys of
 * a namespace, which one person may have made, seven times.
 */
const MAX_RATIO = { key: 3, namespace: 7 };
/**
 * How many times of this: a request that has begun may take more, because it gives room back soonest by continuing; a
 * reply that is paid may take all.
 */
const PORTIONS = { usual: 1, increased: 4, all: Number.POSITIVE_INFINITY };
/**
 * Bodies above this size, or with as many parts, block other requests while they are read: a key may bring two of the
 * largest, and then so many bytes a second.
 */
const LARGE_BODY = MIB;
/** Measured: an object, a list or a member takes the time of so many bytes of text. */
const WORK_PER_PART = 64;
/** The next element of a list, at the least a number, takes a tenth of that. */
const WORK_PER_COMMA = 6;
/** The largest growth of a part in the other dialect: a tool of two letters gets a type, and parameters. */
const MAX_PART_GROWTH = 80;
/** Work up to this is short, like that of any request. */
const SHORT_WORK = 16 * 1024;
const MAX_LARGE_BYTES = 2 * MAX_BODY;
const LARGE_BYTES_PER_SECOND = 8 * MIB;
const MAX_KEYS = 10_000;

/** Measured: `npm run bench -- memory` (docs/operate/gateways.md has the numbers). */
export interface MemoryLimits {
  /** Bytes of all bodies and plain replies together. */
  readonly bytes: number;
  readonly body: number;
  readonly reply: number;
  readonly requests: number;
  /** A share counts no longer than this. */
  readonly maxRequestTime: Millis;
}

/**
 * The process has its memory for its own code and data; for the objects that a body is parsed into, several times its
 * bytes, one body at a time; for the bytes that it keeps meanwhile; and for its streams.
 */
export function limitsIn({
  limit,
  heap = limit / 2,
  own,
  largestBody = Math.floor(limit / 32),
  maxRequestTime = Number.POSITIVE_INFINITY,
}: ProcessMemory): MemoryLimits {
  // A translated body, or a short one's text, is in the heap; Node's does not grow with the limit above 4 GiB.
  const bytes = Math.max(8 * MIB, Math.floor(Math.min((limit - own) / 4, heap / 2)));
  return {
    bytes,
    body: Math.min(MAX_BODY, largestBody),
    // A reply is there twice while its pieces are joined.
    reply: Math.min(MAX_REPLY, Math.floor(bytes / 4)),
    requests: Math.ceil(Math.min(limit, 2 * heap) / REQUEST_BYTES),
    maxRequestTime,
  };
}

/** The room that a body of so many bytes takes. */
export function bytesToKeep(bytes: number): number {
  return bytes <= LONG_TEXT ? SHORT_BODY_COPIES * bytes : Math.max(bytes, SMALL_SHARE);
}

/** The work of reading a body, as bytes of a plain text. */
export function workOf({ length }: Uint8Array, { parts, commas }: JsonSize): number {
  return Math.max(length, WORK_PER_PART * parts + WORK_PER_COMMA * commas);
}

/** The room that the translation of a body takes, about. */
export function bytesToTranslate({ length }: Uint8Array, { parts }: JsonSize): number {
  return length + MAX_PART_GROWTH * parts;
}

/** The part of a key, or of a namespace, in the room. */
interface KeyUse {
  readonly maxRatio: number;
  requests: number;
  kept: number;
  /** Bytes of large bodies, less what the key may bring a second; and when that was counted. */
  largeBytes: number;
  countedAt: Millis;
}

export type MemoryBudget = ReturnType<typeof createMemoryBudget>;

export function createMemoryBudget(limits: MemoryLimits, clock: Pick<Clock, 'now'>) {
  const state: State = { limits, clock, shares: new Set(), keys: createLru(MAX_KEYS), kept: 0 };
  return {
    limits,
    /** Bytes that are taken. */
    kept: () => state.kept,
    /** Opens the share of one request. It takes nothing until it enters. */
    open: (turns: Pick<HttpExchange, 'turn'> = {}) => new MemoryShare(state, turns),
  };
}

interface State {
  readonly limits: MemoryLimits;
  readonly clock: Pick<Clock, 'now'>;
  /** Shares of the requests that are served, the oldest first. */
  readonly shares: Set<MemoryShare>;
  readonly keys: Lru<KeyUse>;
  kept: number;
}

/**
 * The share of one request: its body and what is made of it, or its plain reply. A class, because one is made for each:
 * methods are shared.
 */
export class MemoryShare {
  readonly #state: State;
  readonly #turns: Pick<HttpExchange, 'turn'>;
  #since: Millis = 0;
  /** Of the key, and of its namespace. */
  #uses: ReadonlyArray<KeyUse> = [];
  #owner: TurnOwner | undefined;
  #bytes = 0;
  /** Counted for the key already. */
  #work = 0;

  constructor(state: State, turns: Pick<HttpExchange, 'turn'>) {
    this.#state = state;
    this.#turns = turns;
  }

  get limits(): MemoryLimits {
    return this.#state.limits;
  }

  /** Bytes that it has. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts as a request of this key and namespace. False: the process serves as many as it can, or as it can of these. */
  enter({ scopeId, object }: Pick<KeyPolicy, 'scopeId' | 'object'>): boolean {
    const { limits, clock, shares, keys } = this.#state;
    this.#since = clock.now();
    const useOf = (name: string, toFree: number) => {
      const use = keys.get(name) ?? { maxRatio: toFree, requests: 0, kept: 0, largeBytes: 0, countedAt: this.#since };
      keys.set(name, use);
      return use;
    };
    // No id of a key has a blank.
    const uses = [useOf(scopeId, MAX_RATIO.key), useOf(`namespace ${object.namespace}`, MAX_RATIO.namespace)];
    const isFree = () => uses.every(({ maxRatio, requests }) => requests < maxRatio * (limits.requests - shares.size));
    if (!isFree() && !(this.#forgetOld() && isFree())) return false;
    for (const use of uses) use.requests += 1;
    this.#uses = uses;
    this.#owner = { namespace: object.namespace, key: scopeId };
    shares.add(this);
    return true;
  }

  /** Takes room for so many bytes more, unless there is none. */
  take(bytes: number, of: keyof typeof PORTIONS = 'usual'): boolean {
    if (!this.#fits(bytes, of) && !(this.#forgetOld() && this.#fits(bytes, of))) return false;
    this.#bytes += bytes;
    this.#state.kept += bytes;
    for (const use of this.#uses) use.kept += bytes;
    return true;
  }

  /**
   * Counts a large body as work of its key, what is counted of it before included. False: the key has brought too much
   * lately.
   */
  countWork(bytes: number): boolean {
    const { clock } = this.#state;
    const [key] = this.#uses;
    if (key === undefined || bytes <= LARGE_BODY) return true;
    const now = clock.now();
    const large = Math.max(0, key.largeBytes - (Math.max(0, now - key.countedAt) / 1000) * LARGE_BYTES_PER_SECOND);
    const more = bytes - this.#work;
    if (large + more > MAX_LARGE_BYTES) return false;
    key.largeBytes = large + more;
    key.countedAt = now;
    this.#work = bytes;
    return true;
  }

  /** Counts of a body. One that takes long to read waits for the turn of its key. */
  async sizeOf(body: Uint8Array): Promise<JsonSize> {
    const isLong = body.length > SHORT_WORK;
    if (isLong) await this.turn();
    const size = sizeOfJson(body);
    if (!isLong && workOf(body, size) > SHORT_WORK) await this.turn();
    return size;
  }

  /** Waits for the turn of its key, for the reading of a long JSON text. */
  async turn(): Promise<void> {
    if (this.#owner !== undefined) await this.#turns.turn?.(this.#owner);
  }

  /** Gives back so many bytes; all of them where no number is given. */
  giveBack(bytes = this.#bytes): void {
    const given = Math.min(bytes, this.#bytes);
    this.#bytes -= given;
    this.#state.kept -= given;
    for (const use of this.#uses) use.kept -= given;
  }

  /**
   * A part of it that grows and shrinks: takes room for so many bytes, in place of the last number. False: there is
   * none, and the last number stays.
   */
  openPart(): (bytes: number) => boolean {
    let kept = 0;
    return (bytes) => {
      if (bytes > kept && !this.take(bytes - kept)) return false;
      if (bytes < kept) this.giveBack(kept - bytes);
      kept = bytes;
      return true;
    };
  }

  leave(): void {
    this.giveBack();
    if (this.#state.shares.delete(this)) for (const use of this.#uses) use.requests -= 1;
  }

  #fits(bytes: number, of: keyof typeof PORTIONS): boolean {
    const { limits, kept } = this.#state;
    const free = limits.bytes - kept - bytes;
    if (of === 'all') return free >= 0;
    const left = this.#bytes + bytes <= SMALL_SHARE ? free : free - limits.bytes * KEPT_FOR_SMALL;
    return left >= 0 && this.#uses.every(({ maxRatio, kept }) => kept + bytes <= PORTIONS[of] * maxRatio * left);
  }

  /** Forgets shares whose requests the platform has ended without a word, as Workers do. True: there were some. */
  #forgetOld(): boolean {
    const { limits, clock, shares } = this.#state;
    const before = clock.now() - limits.maxRequestTime;
    let isAny = false;
    for (const share of shares) {
      if (share.#since > before) break;
      share.leave();
      isAny = true;
    }
    return isAny;
  }
}
