// Bodies of reviews: one large one at a time, by turns of the namespaces, a bound on the bytes of all others, and only
// reviews are parsed.

import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import { untilAborted } from '#core/concurrency/timeout.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { fromUtf8 } from '#core/json/bytes.ts';
import { hasTooManyValues, MAX_VALUES } from '#core/json/json-limits.ts';

/**
 * The API server sends the object twice on update, the stored one included. etcd takes 1.5 MiB, in the same JSON, so a
 * review of an object that can be stored has 3 MiB and some KiB about its user. The API server takes requests of up to
 * 3 MiB, whose objects are reviewed before etcd refuses them.
 */
export const MAX_BODY = 7 * 1024 * 1024;
/** A body above this size waits until no other large one is read or validated. */
const LARGE_BODY = 512 * 1024;
/** Large bodies that are read or validated, or whose reviews wait for the cluster: one of each namespace. */
const LARGE_TURNS = 4;
/** Bytes of all smaller bodies that are read concurrently. */
const MAX_SMALL_BYTES = 8 * 1024 * 1024;
/**
 * Bytes of the bodies whose reviews wait for the cluster, and the part of them that smaller ones of one namespace, or all
 * large ones, may have. Such a review keeps of its objects what is read of them (`withoutJson`), which is few times its
 * bytes.
 */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const SHARE = { namespace: 1 / 4, large: 1 / 2 };
/** The API server names the kind first, and the namespace before the user and the objects. */
const HEAD = 1024;
/** Room for the beginning of a large body, or for one that does not say how long it is. */
const FIRST_PIECES = 64 * 1024;
export type Body = Result<Uint8Array, MalformedReview>;

/** An HTTP status, and what is wrong with the envelope. */
export interface MalformedReview {
  readonly status: 400 | 413;
  readonly problem: string;
}

/**
 * The review of a body waits for the cluster: other bodies are read meanwhile. Throws where reviews of this namespace
 * have their share of what may wait.
 */
export type BeginWait = (namespace: string) => void;

/**
 * A reader that hands the body to `use`. Another body that would need too much memory beside it waits until `use` has
 * ended or waits for the cluster, and its sender with it. Large ones of a namespace wait until `use` has ended, and so
 * do all where large ones that wait for the cluster have their share. Rejects when the signal aborts before the whole
 * body is there.
 */
export function createBodyReader() {
  const [large, small] = [createGate(1), createGate(MAX_SMALL_BYTES)];
  const turns = createFairLimiter(LARGE_TURNS);
  const waiting = createWaiting();
  return async <T>(
    request: Request,
    signal: AbortSignal,
    use: (body: Body, beginWait: BeginWait) => Promise<T>,
  ): Promise<T> => {
    // A body with a `content-length` has exactly that length; without one it may have any.
    const size = Number(request.headers.get('content-length') ?? Number.POSITIVE_INFINITY);
    if (size > MAX_BODY && size < Number.POSITIVE_INFINITY) return use(TOO_LARGE, () => {});
    const pieces = size > LARGE_BODY ? openPieces(request, size, signal) : undefined;
    const endTurn = pieces && (await takeTurn(turns, namespaceIn(await pieces.head()), signal));
    try {
      let leave = await (pieces ? large(1, signal) : small(size, signal));
      const beginWait = (namespace: string) => {
        const end = pieces ? waiting(LARGE, size, SHARE.large) : waiting(namespace, size, SHARE.namespace);
        // A large one keeps its place.
        if (end === undefined && pieces) return;
        if (end === undefined)
          throw new Error(`too many reviews of the namespace ${namespace} wait for the cluster; send it again`);
        leave();
        leave = end;
      };
      try {
        return await use(await bodyOf(request, pieces, signal), beginWait);
      } finally {
        leave();
      }
    } finally {
      endTurn?.();
    }
  };
}

/** The owner of all large bodies that wait: no namespace has this name. */
const LARGE = '';

/** Counts the bytes of reviews that wait, by owner. Returns the function that ends the wait; undefined: no room. */
function createWaiting() {
  const byOwner = new Map<string, number>();
  let all = 0;
  const change = (owner: string, bytes: number): void => {
    all += bytes;
    const left = (byOwner.get(owner) ?? 0) + bytes;
    if (left === 0) byOwner.delete(owner);
    else byOwner.set(owner, left);
  };
  return (owner: string, size: number, share: number) => {
    const own = (byOwner.get(owner) ?? 0) + size;
    if (own > MAX_WAITING_BYTES * share || all + size > MAX_WAITING_BYTES) return undefined;
    change(owner, size);
    return () => change(owner, -size);
  };
}

/** Waits until it is the namespace's turn; resolves with the function that ends it. */
function takeTurn(turns: ReturnType<typeof createFairLimiter>, namespace: string, signal: AbortSignal) {
  return new Promise<() => void>((resolve, reject) => {
    const giveUp = () => reject(new Error(OVERTAKEN));
    signal.addEventListener('abort', giveUp, { once: true });
    const begin = (end: () => void) => {
      if (!signal.aborted) return resolve(end);
      giveUp();
      end();
    };
    void turns.run(namespace, () => new Promise<void>(begin));
  });
}

const TOO_LARGE = err<MalformedReview>({ status: 413, problem: `the body is larger than ${MAX_BODY} bytes` });
export const malformedReview = (problem: string) => err<MalformedReview>({ status: 400, problem });

async function bodyOf(request: Request, pieces: Pieces | undefined, signal: AbortSignal): Promise<Body> {
  // Reading the body whole is several times as fast as piece by piece. The server cuts a body that is not whole when it
  // was answered.
  const bytes = pieces ? await pieces.whole() : new Uint8Array(await untilAborted(signal, request.arrayBuffer()));
  if (bytes === undefined || bytes.length > MAX_BODY) return TOO_LARGE;
  if (bytes.length === 0) return malformedReview('the body is empty');
  if (!isLikeReview(bytes)) return malformedReview('the body is not an AdmissionReview');
  if (hasTooManyValues(bytes)) return malformedReview(`the review holds more than ${MAX_VALUES} values`);
  return ok(bytes);
}

const headOf = (bytes: Uint8Array): string => fromUtf8(bytes.subarray(0, HEAD));

/** Whether the first bytes are those of a map that names `AdmissionReview`. */
function isLikeReview(bytes: Uint8Array): boolean {
  const head = headOf(bytes);
  return /^\s*\{/.test(head) && head.includes('"AdmissionReview"');
}

/** In a text of JSON these quotes would have a backslash each. */
const namespaceIn = (head: string): string => /"namespace"\s*:\s*"([^"]*)"/.exec(head)?.[1] ?? '';

type Pieces = ReturnType<typeof openPieces>;

/** A body that is read in two steps: until its first kilobyte is there, and to its end. */
function openPieces({ body }: Request, size: number, signal: AbortSignal) {
  let bytes = new Uint8Array(FIRST_PIECES);
  let length = 0;
  const readUpTo = async (enough: number): Promise<void> => {
    const reader = body?.getReader();
    const cancel = () => void reader?.cancel().catch(() => undefined);
    signal.addEventListener('abort', cancel, { once: true });
    while (length < enough) {
      const piece = await reader?.read();
      if (piece?.done !== false) break;
      const end = length + piece.value.length;
      if (end > bytes.length) bytes = grown(bytes, Math.min(Math.max(end, Math.min(2 * end, size)), MAX_BODY));
      if (end <= MAX_BODY) bytes.set(piece.value, length);
      length = end;
    }
    signal.removeEventListener('abort', cancel);
    signal.throwIfAborted();
    // The server drains unread bytes from the connection, so the sender still receives the answer.
    reader?.releaseLock();
  };
  return {
    head: async (): Promise<string> => {
      await readUpTo(HEAD);
      return headOf(bytes);
    },
    /** The whole body, or its beginning where that is not a review. Undefined: larger than `MAX_BODY`. */
    whole: async (): Promise<Uint8Array | undefined> => {
      if (size <= MAX_BODY) bytes = grown(bytes, Math.max(size, length));
      if (isLikeReview(bytes)) await readUpTo(MAX_BODY + 1);
      return length > MAX_BODY ? undefined : bytes.subarray(0, length);
    },
  };
}

function grown(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}

const OVERTAKEN = 'other reviews took all the time of this one; send it again';

/** A semaphore of `room` units in the order of arrival; resolves with the function that gives the units back. */
function createGate(room: number) {
  let free = room;
  const queue: Array<{ readonly size: number; readonly enter: () => void }> = [];
  const letIn = (): void => {
    for (let next = queue[0]; next !== undefined && next.size <= free; next = queue[0]) {
      queue.shift();
      free -= next.size;
      next.enter();
    }
  };
  return (size: number, signal: AbortSignal) =>
    new Promise<() => void>((resolve, reject) => {
      const leave = () => {
        free += size;
        letIn();
      };
      const place = { size, enter: () => resolve(leave) };
      const giveUp = () => {
        const at = queue.indexOf(place);
        if (at === -1) return;
        queue.splice(at, 1);
        letIn();
        reject(new Error(OVERTAKEN));
      };
      signal.addEventListener('abort', giveUp, { once: true });
      queue.push(place);
      letIn();
    });
}
