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
const REQUEST = MIB / 2;
/** A short body is kept together with its text, in up to two bytes a letter. */
const WITH_TEXT = 3;
/** A share up to this size takes the last eighth of the room, which larger ones leave free. */
const SMALL = WITH_TEXT * LONG_TEXT;
const FOR_SMALL = 1 / 8;
/**
 * Others always find room: a key has at most three times the requests, and the bytes, that it leaves free; the keys of
 * a namespace, which one person may have made, seven times.
 */
const TO_FREE = { key: 3, namespace: 7 };
/**
 * How many times of this: a request that has begun may take more, because it gives room back soonest by continuing; a
 * reply that is paid may take all.
 */
const PORTIONS = { mine: 1, more: 4, all: Number.POSITIVE_INFINITY };
/**
 * Bodies above this size, or with as many parts, block other requests while they are read: a key may bring two of the
 * largest, and then so many bytes a second.
 */
const LARGE = MIB;
/** Measured: an object, a list or a member takes the time of so many bytes of text. */
const PART = 64;
/** The next element of a list, at the least a number, takes a tenth of that. */
const COMMA = 6;
/** The largest growth of a part in the other dialect: a tool of two letters gets a type, and parameters. */
const TRANSLATED_PART = 80;
/** Work up to this is short, like that of any request. */
const SHORT = 16 * 1024;
const MAX_LARGE = 2 * MAX_BODY;
const LARGE_PER_SECOND = 8 * MIB;
const MAX_KEYS = 10_000;

/** Measured: `npm run bench -- memory` (docs/operate/gateways.md has the numbers). */
export interface RoomLimits {
  /** Bytes of all bodies and plain replies together. */
  readonly bytes: number;
  readonly body: number;
  readonly reply: number;
  readonly requests: number;
  /** A share counts no longer than this. */
  readonly lasts: Millis;
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
  lasts = Number.POSITIVE_INFINITY,
}: ProcessMemory): RoomLimits {
  // A translated body, or a short one's text, is in the heap; Node's does not grow with the limit above 4 GiB.
  const bytes = Math.max(8 * MIB, Math.floor(Math.min((limit - own) / 4, heap / 2)));
  return {
    bytes,
    body: Math.min(MAX_BODY, largestBody),
    // A reply is there twice while its pieces are joined.
    reply: Math.min(MAX_REPLY, Math.floor(bytes / 4)),
    requests: Math.ceil(Math.min(limit, 2 * heap) / REQUEST),
    lasts,
  };
}

/** The room that a body of so many bytes takes. */
export function roomOf(bytes: number): number {
  return bytes <= LONG_TEXT ? WITH_TEXT * bytes : Math.max(bytes, SMALL);
}

/** The work of reading a body, as bytes of a plain text. */
export function workOf({ length }: Uint8Array, { parts, commas }: JsonSize): number {
  return Math.max(length, PART * parts + COMMA * commas);
}

/** The room that the translation of a body takes, about. */
export function roomToTranslate({ length }: Uint8Array, { parts }: JsonSize): number {
  return length + TRANSLATED_PART * parts;
}

/** The part of a key, or of a namespace, in the room. */
interface KeyUse {
  readonly toFree: number;
  requests: number;
  kept: number;
  /** Bytes of large bodies, less what the key may bring a second; and when that was counted. */
  large: number;
  at: Millis;
}

export type Room = ReturnType<typeof createRoom>;

export function createRoom(limits: RoomLimits, clock: Pick<Clock, 'now'>) {
  const state: State = { limits, clock, shares: new Set(), keys: createLru(MAX_KEYS), kept: 0 };
  return {
    limits,
    /** Bytes that are taken. */
    kept: () => state.kept,
    /** Opens the share of one request. It takes nothing until it enters. */
    open: (turns: Pick<HttpExchange, 'turn'> = {}) => new Share(state, turns),
  };
}

interface State {
  readonly limits: RoomLimits;
  readonly clock: Pick<Clock, 'now'>;
  /** Shares of the requests that are served, the oldest first. */
  readonly shares: Set<Share>;
  readonly keys: Lru<KeyUse>;
  kept: number;
}

/**
 * The share of one request: its body and what is made of it, or its plain reply. A class, because one is made for each:
 * methods are shared.
 */
export class Share {
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

  get limits(): RoomLimits {
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
      const use = keys.get(name) ?? { toFree, requests: 0, kept: 0, large: 0, at: this.#since };
      keys.set(name, use);
      return use;
    };
    // No id of a key has a blank.
    const uses = [useOf(scopeId, TO_FREE.key), useOf(`namespace ${object.namespace}`, TO_FREE.namespace)];
    const isFree = () => uses.every(({ toFree, requests }) => requests < toFree * (limits.requests - shares.size));
    if (!isFree() && !(this.#forgetOld() && isFree())) return false;
    for (const use of uses) use.requests += 1;
    this.#uses = uses;
    this.#owner = { namespace: object.namespace, key: scopeId };
    shares.add(this);
    return true;
  }

  /** Takes room for so many bytes more, unless there is none. */
  take(bytes: number, of: keyof typeof PORTIONS = 'mine'): boolean {
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
  work(bytes: number): boolean {
    const { clock } = this.#state;
    const [key] = this.#uses;
    if (key === undefined || bytes <= LARGE) return true;
    const now = clock.now();
    const large = Math.max(0, key.large - (Math.max(0, now - key.at) / 1000) * LARGE_PER_SECOND);
    const more = bytes - this.#work;
    if (large + more > MAX_LARGE) return false;
    Object.assign(key, { large: large + more, at: now });
    this.#work = bytes;
    return true;
  }

  /** Counts of a body. One that takes long to read waits for the turn of its key. */
  async sizeOf(body: Uint8Array): Promise<JsonSize> {
    const isLong = body.length > SHORT;
    if (isLong) await this.turn();
    const size = sizeOfJson(body);
    if (!isLong && workOf(body, size) > SHORT) await this.turn();
    return size;
  }

  /** Waits for the turn of its key, for the reading of a long JSON text. */
  async turn(): Promise<void> {
    if (this.#owner !== undefined) await this.#turns.turn?.(this.#owner);
  }

  /** Gives back so many bytes; all of them where no number is given. */
  give(bytes = this.#bytes): void {
    const given = Math.min(bytes, this.#bytes);
    this.#bytes -= given;
    this.#state.kept -= given;
    for (const use of this.#uses) use.kept -= given;
  }

  /**
   * A part of it that grows and shrinks: takes room for so many bytes, in place of the last number. False: there is
   * none, and the last number stays.
   */
  part(): (bytes: number) => boolean {
    let kept = 0;
    return (bytes) => {
      if (bytes > kept && !this.take(bytes - kept)) return false;
      if (bytes < kept) this.give(kept - bytes);
      kept = bytes;
      return true;
    };
  }

  leave(): void {
    this.give();
    if (this.#state.shares.delete(this)) for (const use of this.#uses) use.requests -= 1;
  }

  #fits(bytes: number, of: keyof typeof PORTIONS): boolean {
    const { limits, kept } = this.#state;
    const free = limits.bytes - kept - bytes;
    if (of === 'all') return free >= 0;
    const left = this.#bytes + bytes <= SMALL ? free : free - limits.bytes * FOR_SMALL;
    return left >= 0 && this.#uses.every(({ toFree, kept }) => kept + bytes <= PORTIONS[of] * toFree * left);
  }

  /** Forgets shares whose requests the platform has ended without a word, as Workers do. True: there were some. */
  #forgetOld(): boolean {
    const { limits, clock, shares } = this.#state;
    const before = clock.now() - limits.lasts;
    let isAny = false;
    for (const share of shares) {
      if (share.#since > before) break;
      share.leave();
      isAny = true;
    }
    return isAny;
  }
}
