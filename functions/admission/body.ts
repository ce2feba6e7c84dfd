// Bodies of reviews: one large one at a time, a bound on the bytes of all others, and only reviews are parsed.

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
/** Bytes of all smaller bodies that are read concurrently. */
const MAX_SMALL_BYTES = 8 * 1024 * 1024;
/**
 * Bytes of the smaller bodies whose reviews wait for the cluster, and the part of them that one namespace may have. Such a
 * review keeps of its objects what is read of them (`withoutJson`), which is few times its bytes.
 */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const SHARE = 1 / 4;
/** The API server names the kind first. */
const HEAD = 1024;
/** Room for a body that does not say how long it is. */
const FIRST_PIECES = 64 * 1024;
export type Body = Result<Uint8Array, NotAReview>;

/** An HTTP status, and what is wrong with the envelope. */
export interface NotAReview {
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
 * ended or waits for the cluster, and its sender with it. A large one waits until `use` has ended. Rejects when the
 * signal aborts before the whole body is there.
 */
export function createBodyReader() {
  const [large, small] = [createGate(1), createGate(MAX_SMALL_BYTES)];
  const waiting = createWaiting();
  return async <T>(
    request: Request,
    signal: AbortSignal,
    use: (body: Body, beginWait: BeginWait) => Promise<T>,
  ): Promise<T> => {
    // A body with a `content-length` has exactly that length; without one it may have any.
    const size = Number(request.headers.get('content-length') ?? Number.POSITIVE_INFINITY);
    if (size > MAX_BODY && size < Number.POSITIVE_INFINITY) return use(TOO_LARGE, () => {});
    const isLarge = size > LARGE_BODY;
    let leave = await (isLarge ? large(1, signal) : small(size, signal));
    const beginWait = (namespace: string) => {
      if (isLarge) return;
      const end = waiting(namespace, size);
      leave();
      leave = end;
    };
    try {
      return await use(await bodyOf(request, size, signal), beginWait);
    } finally {
      leave();
    }
  };
}

/** Counts the bytes of reviews that wait, by namespace. Returns the function that ends the wait. */
function createWaiting() {
  const byNamespace = new Map<string, number>();
  let all = 0;
  const change = (namespace: string, bytes: number): void => {
    all += bytes;
    const left = (byNamespace.get(namespace) ?? 0) + bytes;
    if (left === 0) byNamespace.delete(namespace);
    else byNamespace.set(namespace, left);
  };
  return (namespace: string, size: number) => {
    const own = (byNamespace.get(namespace) ?? 0) + size;
    if (own > MAX_WAITING_BYTES * SHARE || all + size > MAX_WAITING_BYTES)
      throw new Error(`too many large reviews of the namespace ${namespace} wait for the cluster; send it again`);
    change(namespace, size);
    return () => change(namespace, -size);
  };
}

const TOO_LARGE = err<NotAReview>({ status: 413, problem: `the body is larger than ${MAX_BODY} bytes` });
export const notAReview = (problem: string) => err<NotAReview>({ status: 400, problem });

async function bodyOf(request: Request, size: number, signal: AbortSignal): Promise<Body> {
  // Reading the body whole is several times as fast as piece by piece. The server cuts a body that is not whole when it
  // was answered.
  const isSmall = size <= LARGE_BODY;
  const bytes = isSmall
    ? new Uint8Array(await untilAborted(signal, request.arrayBuffer()))
    : await readPieces(request, size, signal);
  if (bytes === undefined || bytes.length > MAX_BODY) return TOO_LARGE;
  if (bytes.length === 0) return notAReview('the body is empty');
  if (!isLikeReview(bytes)) return notAReview('the body is not an AdmissionReview');
  if (hasTooManyValues(bytes)) return notAReview(`the review holds more than ${MAX_VALUES} values`);
  return ok(bytes);
}

/** Whether the first bytes are those of a map that names `AdmissionReview`. */
function isLikeReview(bytes: Uint8Array): boolean {
  const head = fromUtf8(bytes.subarray(0, HEAD));
  return /^\s*\{/.test(head) && head.includes('"AdmissionReview"');
}

/** The whole body, or its beginning where that is not a review. Undefined: larger than `MAX_BODY`. */
async function readPieces({ body }: Request, size: number, signal: AbortSignal): Promise<Uint8Array | undefined> {
  const reader = body?.getReader();
  const cancel = () => void reader?.cancel().catch(() => undefined);
  signal.addEventListener('abort', cancel, { once: true });
  let bytes = new Uint8Array(size <= MAX_BODY ? size : FIRST_PIECES);
  let length = 0;
  for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read()) {
    const end = length + piece.value.length;
    if (end > bytes.length) bytes = grown(bytes, Math.min(2 * end, MAX_BODY));
    if (end <= MAX_BODY) bytes.set(piece.value, length);
    length = end;
    if (length > MAX_BODY || (length >= HEAD && !isLikeReview(bytes))) break;
  }
  signal.removeEventListener('abort', cancel);
  signal.throwIfAborted();
  // The server drains unread bytes from the connection, so the sender still receives the answer.
  reader?.releaseLock();
  return length > MAX_BODY ? undefined : bytes.subarray(0, length);
}

function grown(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}

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
        reject(new Error('other reviews took all the time of this one; send it again'));
      };
      signal.addEventListener('abort', giveUp, { once: true });
      queue.push(place);
      letIn();
    });
}
