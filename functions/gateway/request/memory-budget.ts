// The memory budget of a process: how many requests it serves concurrently, and how many bytes of bodies and plain
// replies it keeps for them.

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
 * Memory of a request without its body: its connections, and the state of its stream. Measured: 100 to 300 KiB, at most
 * half of it in the heap.
 */
const REQUEST_BYTES = MIB / 2;
/**
 * Copies of a short body, in bytes for each of its bytes: the body itself, and its text with up to two bytes for each
 * letter.
 */
const SHORT_BODY_COPIES = 3;
/** The maximum size of a small share. Small shares may use the last part of the budget (`KEPT_FOR_SMALL`). */
const SMALL_SHARE = SHORT_BODY_COPIES * LONG_TEXT;
const KEPT_FOR_SMALL = 1 / 8;
/**
 * The maximum ratio of use to what is free: a key may use three times the requests and bytes that are free. All keys of
 * a namespace, which one person may have created, may use seven times. So others always find memory.
 */
const MAX_RATIO = { key: 3, namespace: 7 };
/**
 * Multiples of `MAX_RATIO`. `increased`: for a request that has begun, because it gives memory back soonest if it
 * continues. `all`: for a reply that is already charged.
 */
const PORTIONS = { usual: 1, increased: 4, all: Number.POSITIVE_INFINITY };
/**
 * A body with more work is large: other requests wait while it is read. A key may send `MAX_LARGE_BYTES` of large
 * bodies, and then `LARGE_BYTES_PER_SECOND`. All keys of a namespace may send `LARGE_RATIO` times as much.
 */
const LARGE_BODY = MIB;
/** The work of an object, a list or a member, in bytes of text (measured). */
const WORK_PER_PART = 64;
/** The work of a further element of a list, which may be a single digit: a tenth of a part. */
const WORK_PER_COMMA = 6;
/** The maximum growth of a part by translation: a tool of two letters gets a type and parameters. */
const MAX_PART_GROWTH = 80;
/** The maximum of short work; most requests need less. */
const SHORT_WORK = 16 * 1024;
const MAX_LARGE_BYTES = 2 * MAX_BODY;
const LARGE_BYTES_PER_SECOND = 8 * MIB;
const LARGE_RATIO = { key: 1, namespace: 2 };
const MAX_KEYS = 10_000;

/** The limits of a process. Measured: `npm run bench -- memory` (docs/operate/gateways.md has the numbers). */
export interface MemoryLimits {
  /** Bytes of all bodies and plain replies together. */
  readonly bytes: number;
  readonly body: number;
  readonly reply: number;
  readonly requests: number;
  /** The maximum age of a share; older shares do not count. */
  readonly maxRequestTime: Millis;
}

/**
 * The limits for a memory. A process needs memory for its own code and data, for the objects that one body is parsed
 * into (several times its bytes), for the bytes that it keeps, and for its streams.
 */
export function limitsIn({
  limit,
  heap = limit / 2,
  own,
  largestBody = Math.floor(limit / 32),
  maxRequestTime = Number.POSITIVE_INFINITY,
}: ProcessMemory): MemoryLimits {
  // Translated bodies and the texts of short ones are in the heap. Node's heap does not grow with a limit above 4 GiB.
  const bytes = Math.max(8 * MIB, Math.floor(Math.min((limit - own) / 4, heap / 2)));
  return {
    bytes,
    body: Math.min(MAX_BODY, largestBody),
    // A reply takes twice its bytes while its pieces are joined.
    reply: Math.min(MAX_REPLY, Math.floor(bytes / 4)),
    requests: Math.ceil(Math.min(limit, 2 * heap) / REQUEST_BYTES),
    maxRequestTime,
  };
}

/** The bytes of memory for a body of this length. */
export function bytesToKeep(bytes: number): number {
  return bytes <= LONG_TEXT ? SHORT_BODY_COPIES * bytes : Math.max(bytes, SMALL_SHARE);
}

/** The work of reading a body, as bytes of a plain text. */
export function workOf({ length }: Uint8Array, { parts, commas }: JsonSize): number {
  return Math.max(length, WORK_PER_PART * parts + WORK_PER_COMMA * commas);
}

/**
 * The approximate bytes of memory for the translation of a body. The input of a tool becomes a text, in which each
 * quote and each backslash is escaped.
 */
export function bytesToTranslate({ length }: Uint8Array, { parts, escapes }: JsonSize): number {
  return length + escapes + MAX_PART_GROWTH * parts;
}

/** The use of the budget by a key or a namespace. */
interface MemoryUse {
  readonly ownerKind: keyof typeof MAX_RATIO;
  requests: number;
  kept: number;
  /** Bytes of large bodies, less those that it may send each second; and the time of that count. */
  largeBytes: number;
  countedAt: Millis;
}

export type MemoryBudget = ReturnType<typeof createMemoryBudget>;

export function createMemoryBudget(limits: MemoryLimits, clock: Pick<Clock, 'now'>) {
  const state: State = { limits, clock, shares: new Set(), keys: createLru(MAX_KEYS), kept: 0 };
  return {
    limits,
    /** Bytes that shares have taken. */
    kept: () => state.kept,
    /** Opens the share of one request. A share takes nothing until it enters. */
    open: (turns: Pick<HttpExchange, 'turn'> = {}) => new RequestMemory(state, turns),
  };
}

interface State {
  readonly limits: MemoryLimits;
  readonly clock: Pick<Clock, 'now'>;
  /** Shares of the requests in flight, the oldest first. */
  readonly shares: Set<RequestMemory>;
  readonly keys: Lru<MemoryUse>;
  kept: number;
}

/**
 * The memory of one request: its body and what is made of it, or its plain reply. A class, because each request has
 * one: methods are shared.
 */
export class RequestMemory {
  readonly #state: State;
  readonly #turns: Pick<HttpExchange, 'turn'>;
  #since: Millis = 0;
  /** The uses of the key and of its namespace. */
  #uses: ReadonlyArray<MemoryUse> = [];
  #owner: TurnOwner | undefined;
  #bytes = 0;
  /** The work that is already counted, of a large body. */
  #work = 0;

  constructor(state: State, turns: Pick<HttpExchange, 'turn'>) {
    this.#state = state;
    this.#turns = turns;
  }

  get limits(): MemoryLimits {
    return this.#state.limits;
  }

  /** The body is large: each step that reads it waits for a turn of its own. */
  get isLarge(): boolean {
    return this.#work > 0;
  }

  /** Bytes that this share has taken. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts this request for its key and namespace. False: the process, the key or the namespace has as many requests as
   * it may.
   */
  enter({ scopeId, object }: Pick<KeyPolicy, 'scopeId' | 'object'>): boolean {
    const { limits, clock, shares, keys } = this.#state;
    this.#since = clock.now();
    const useOf = (name: string, ownerKind: MemoryUse['ownerKind']): MemoryUse => {
      const known = keys.get(name);
      if (known !== undefined) return known;
      const use = { ownerKind, requests: 0, kept: 0, largeBytes: 0, countedAt: this.#since };
      keys.set(name, use);
      return use;
    };
    // The name of a namespace has a blank, the id of a key has none.
    const uses = [useOf(scopeId, 'key'), useOf(`namespace ${object.namespace}`, 'namespace')];
    const hasRoom = () =>
      uses.every(({ ownerKind, requests }) => requests < MAX_RATIO[ownerKind] * (limits.requests - shares.size));
    if (!hasRoom() && !(this.#forgetOld() && hasRoom())) return false;
    for (const use of uses) use.requests += 1;
    this.#uses = uses;
    this.#owner = { namespace: object.namespace, key: scopeId };
    shares.add(this);
    return true;
  }

  /** Takes this number of further bytes. False: they are not free. */
  take(bytes: number, portion: keyof typeof PORTIONS = 'usual'): boolean {
    if (!this.#fits(bytes, portion) && !(this.#forgetOld() && this.#fits(bytes, portion))) return false;
    this.#bytes += bytes;
    this.#state.kept += bytes;
    for (const use of this.#uses) use.kept += bytes;
    return true;
  }

  /**
   * Counts the work of a large body for its key and namespace. `bytes` includes what was counted for this body before.
   * False: one of them has sent too much in the last seconds.
   */
  countWork(bytes: number): boolean {
    if (bytes <= LARGE_BODY) return true;
    const now = this.#state.clock.now();
    const more = bytes - this.#work;
    for (const use of this.#uses) {
      const passed = Math.max(0, now - use.countedAt) / 1000;
      use.largeBytes = Math.max(0, use.largeBytes - passed * LARGE_RATIO[use.ownerKind] * LARGE_BYTES_PER_SECOND);
      use.countedAt = now;
    }
    if (this.#uses.some(({ ownerKind, largeBytes }) => largeBytes + more > LARGE_RATIO[ownerKind] * MAX_LARGE_BYTES))
      return false;
    for (const use of this.#uses) use.largeBytes += more;
    this.#work = bytes;
    return true;
  }

  /** The size of a body. A body that takes long to read waits for the turn of its key. */
  sizeOf(body: Uint8Array): JsonSize | Promise<JsonSize> {
    if (body.length > SHORT_WORK) return this.turn().then(() => sizeOfJson(body));
    const size = sizeOfJson(body);
    return workOf(body, size) > SHORT_WORK ? this.turn().then(() => size) : size;
  }

  /** Waits for the turn of the key, before a long JSON text is read. */
  async turn(): Promise<void> {
    if (this.#owner !== undefined) await this.#turns.turn?.(this.#owner);
  }

  /** Gives back this number of bytes; without a number, all. */
  giveBack(bytes = this.#bytes): void {
    const given = Math.min(bytes, this.#bytes);
    this.#bytes -= given;
    this.#state.kept -= given;
    for (const use of this.#uses) use.kept -= given;
  }

  /**
   * Opens a part that grows and shrinks. The returned function takes the new size of the part. False: the memory is not
   * free, and the part keeps its size.
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

  #fits(bytes: number, portion: keyof typeof PORTIONS): boolean {
    const { limits, kept } = this.#state;
    const free = limits.bytes - kept - bytes;
    if (portion === 'all') return free >= 0;
    const remaining = this.#bytes + bytes <= SMALL_SHARE ? free : free - limits.bytes * KEPT_FOR_SMALL;
    return (
      remaining >= 0 &&
      this.#uses.every((use) => use.kept + bytes <= PORTIONS[portion] * MAX_RATIO[use.ownerKind] * remaining)
    );
  }

  /** Removes shares of requests that the platform ended without a notice, as Workers does. True: there were some. */
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
