// Bodies of reviews, read in bounded memory: one large body at a time, in turns of the namespaces, and smaller bodies
// up to a number of bytes together. A body that does not begin like a review is not parsed.

import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import { untilAborted } from '#core/concurrency/timeout.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { fromUtf8 } from '#core/json/bytes.ts';
import { hasTooManyValues, MAX_VALUES } from '#core/json/json-limits.ts';

/**
 * The maximum bytes of a body. An update has two objects, the new and the stored one. etcd stores objects of up to 1.5
 * MiB, so the review of an object that can be stored has 3 MiB and some KiB about its user. The API server accepts
 * requests of up to 3 MiB, and their objects are reviewed before etcd refuses them.
 */
export const MAX_BODY = 7 * 1024 * 1024;
/** A body above this size is large: it waits until no other large body is read or validated. */
const LARGE_BODY = 512 * 1024;
/** Large bodies that are read, validated or wait for the cluster: of one namespace only one has a turn. */
const LARGE_TURNS = 4;
/** Bytes of all smaller bodies that are read concurrently. */
const MAX_SMALL_BYTES = 8 * 1024 * 1024;
/**
 * The maximum bytes of bodies whose reviews wait for the cluster, and the shares for the smaller bodies of one
 * namespace and for all large bodies. A waiting review keeps only what is read of its objects (`withoutJson`), which
 * takes a few times the bytes of its body.
 */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const WAITING_SHARES = { namespace: 1 / 4, large: 1 / 2 };
/** The first bytes, which contain the kind and the namespace: the API server writes them before user and objects. */
const HEAD_BYTES = 1024;
/** The first buffer of a large body, or of a body without `content-length`. */
const FIRST_BUFFER = 64 * 1024;
export type ReviewBody = Result<Uint8Array, MalformedReview>;

/** An HTTP status, and what is wrong with the body apart from its objects. */
export interface MalformedReview {
  readonly status: 400 | 413;
  readonly problem: string;
}

/**
 * Marks the review of a body as waiting for the cluster, so that other bodies are read meanwhile. Throws if waiting
 * reviews of this namespace have used their share.
 */
export type BeginWait = (namespace: string) => void;

/**
 * A reader that passes the body to `use`. A body that would need too much memory waits, and its sender with it, until
 * the `use` of another body has ended or waits for the cluster. A large body always waits until the `use` of another
 * large body of its namespace has ended; all large bodies do if those that wait for the cluster have used their share.
 * Rejects if the signal aborts before the whole body has arrived.
 */
export function createBodyReader() {
  const [large, small] = [createSemaphore(1), createSemaphore(MAX_SMALL_BYTES)];
  const turns = createFairLimiter(LARGE_TURNS);
  const reserveWait = createWaitBudget();
  return async <T>(
    request: Request,
    signal: AbortSignal,
    use: (body: ReviewBody, beginWait: BeginWait) => Promise<T>,
  ): Promise<T> => {
    // A body without `content-length` may have any length.
    const size = Number(request.headers.get('content-length') ?? Number.POSITIVE_INFINITY);
    if (size > MAX_BODY && size < Number.POSITIVE_INFINITY) return use(TOO_LARGE, () => {});
    const largeBody = size > LARGE_BODY ? openPieces(request, size, signal) : undefined;
    const endTurn = largeBody && (await takeTurn(turns, namespaceIn(await largeBody.readHead()), signal));
    try {
      let leave = await (largeBody ? large(1, signal) : small(size, signal));
      const beginWait = (namespace: string) => {
        const end = largeBody
          ? reserveWait(LARGE_OWNER, size, WAITING_SHARES.large)
          : reserveWait(namespace, size, WAITING_SHARES.namespace);
        // Without a share, a large body keeps its place among those that are read.
        if (end === undefined && largeBody) return;
        if (end === undefined)
          throw new Error(`too many reviews of namespace ${namespace} wait for the cluster; send the request again`);
        leave();
        leave = end;
      };
      try {
        return await use(await readWholeBody(request, largeBody, signal), beginWait);
      } finally {
        leave();
      }
    } finally {
      endTurn?.();
    }
  };
}

/** The owner of all waiting large bodies: no namespace has this name. */
const LARGE_OWNER = '';

/** Counts the bytes of waiting reviews by owner. Returns the function that ends a wait; undefined: no share is left. */
function createWaitBudget() {
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
    const giveUp = () => reject(new Error(WAITED_TOO_LONG));
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

async function readWholeBody(
  request: Request,
  largeBody: BodyPieces | undefined,
  signal: AbortSignal,
): Promise<ReviewBody> {
  // Reading a body as a whole is several times as fast as in pieces. The server ends a body that is incomplete when its
  // review is answered.
  const bytes = largeBody
    ? await largeBody.readWhole()
    : new Uint8Array(await untilAborted(signal, request.arrayBuffer()));
  if (bytes === undefined || bytes.length > MAX_BODY) return TOO_LARGE;
  if (bytes.length === 0) return malformedReview('the body is empty');
  if (!beginsLikeReview(bytes)) return malformedReview('the body is not an AdmissionReview');
  if (hasTooManyValues(bytes)) return malformedReview(`the review has more than ${MAX_VALUES} values`);
  return ok(bytes);
}

const headOf = (bytes: Uint8Array): string => fromUtf8(bytes.subarray(0, HEAD_BYTES));

/** Whether the body begins with a JSON map that contains `"AdmissionReview"`. */
function beginsLikeReview(bytes: Uint8Array): boolean {
  const head = headOf(bytes);
  return /^\s*\{/.test(head) && head.includes('"AdmissionReview"');
}

/** Inside a JSON string these quotes would be escaped, so only a member `namespace` matches. */
const namespaceIn = (head: string): string => /"namespace"\s*:\s*"([^"]*)"/.exec(head)?.[1] ?? '';

type BodyPieces = ReturnType<typeof openPieces>;

/** A large body, read in two steps: its first kilobyte, and then to its end. */
function openPieces({ body }: Request, size: number, signal: AbortSignal) {
  let bytes = new Uint8Array(FIRST_BUFFER);
  let length = 0;
  const readUpTo = async (target: number): Promise<void> => {
    const reader = body?.getReader();
    const cancel = () => void reader?.cancel().catch(() => undefined);
    signal.addEventListener('abort', cancel, { once: true });
    while (length < target) {
      const piece = await reader?.read();
      if (piece?.done !== false) break;
      const end = length + piece.value.length;
      if (end > bytes.length) bytes = enlarge(bytes, Math.min(Math.max(end, Math.min(2 * end, size)), MAX_BODY));
      if (end <= MAX_BODY) bytes.set(piece.value, length);
      length = end;
    }
    signal.removeEventListener('abort', cancel);
    signal.throwIfAborted();
    // The server drains unread bytes from the connection, so the sender still receives the answer.
    reader?.releaseLock();
  };
  return {
    readHead: async (): Promise<string> => {
      await readUpTo(HEAD_BYTES);
      return headOf(bytes);
    },
    /** The whole body, or only its beginning if that is not a review's. Undefined: larger than `MAX_BODY`. */
    readWhole: async (): Promise<Uint8Array | undefined> => {
      if (size <= MAX_BODY) bytes = enlarge(bytes, Math.max(size, length));
      if (beginsLikeReview(bytes)) await readUpTo(MAX_BODY + 1);
      return length > MAX_BODY ? undefined : bytes.subarray(0, length);
    },
  };
}

function enlarge(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}

const WAITED_TOO_LONG = 'the review waited for other reviews until its timeout; send the request again';

/** A semaphore of `capacity` units, in the order of arrival. Resolves with the function that returns the units. */
function createSemaphore(capacity: number) {
  let free = capacity;
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
      const waiter = { size, enter: () => resolve(leave) };
      const giveUp = () => {
        const at = queue.indexOf(waiter);
        if (at === -1) return;
        queue.splice(at, 1);
        letIn();
        reject(new Error(WAITED_TOO_LONG));
      };
      signal.addEventListener('abort', giveUp, { once: true });
      queue.push(waiter);
      letIn();
    });
}
