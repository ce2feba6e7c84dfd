// The bytes that are read of a body, and which bodies wait: counted here, and measured in real memory in
// test/admission/memory.world.test.ts.
import { describe, expect, test } from 'vitest';
import { createBodyReader, MAX_BODY, type ReviewBody } from '../body.ts';

const HEAD = '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"';
const reviewOf = (length: number, namespace = '') => {
  const head = HEAD.replace('"uid":"', `"namespace":"${namespace}","uid":"`);
  return `${head}${'x'.repeat(length - head.length - 3)}"}}`;
};
const MIB = 1024 * 1024;
const never = new AbortController().signal;

const requestOf = (body: RequestInit['body'], promised?: number) =>
  new Request('http://x/', {
    method: 'POST',
    body,
    duplex: 'half',
    headers: promised === undefined ? {} : { 'content-length': String(promised) },
  } as RequestInit);

const PIECE = 64 * 1024;

/** A request whose body is this text in pieces, with the number of pieces that were read. */
function streamOf(text: string, piece = PIECE) {
  const bytes = new TextEncoder().encode(text);
  const taken = { bytes: 0 };
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (taken.bytes >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(taken.bytes, taken.bytes + piece));
        taken.bytes += piece;
      },
    },
    { highWaterMark: 0 },
  );
  return { body, taken };
}

const lengthOf = async (body: ReviewBody) =>
  body.ok ? body.value.length : `${body.failure.status} ${body.failure.problem}`;
const read = (request: Request) => createBodyReader()(request, never, lengthOf);

describe('a body', () => {
  test.each([
    ['small', 1000],
    ['of the maximum size', MAX_BODY],
  ])('that is %s is read whole, with and without content-length', async (_, length) => {
    const text = reviewOf(length);
    expect(await read(requestOf(text))).toBe(length);
    expect(await read(requestOf(text, length))).toBe(length);
  });

  test('that is too large is 413: unread if its content-length shows it, else when the limit is reached', async () => {
    const { body, taken } = streamOf(reviewOf(MAX_BODY + 1));
    expect(await read(requestOf(body, MAX_BODY + 1))).toMatch(/^413 the body is larger than/);
    expect(taken.bytes).toBe(0);
    const endless = streamOf(reviewOf(3 * MAX_BODY));
    expect(await read(requestOf(endless.body))).toMatch(/^413 /);
    expect(endless.taken.bytes).toBeLessThan(MAX_BODY + 256 * 1024);
  });

  test.each([
    ['empty', '', 'the body is empty'],
    ['of another kind', `{"kind":"Pod","spec":"${'x'.repeat(MIB)}"}`, 'the body is not an AdmissionReview'],
    ['a list', `[${'{},'.repeat(MIB)}{}]`, 'the body is not an AdmissionReview'],
    ['of too many values', `${HEAD}","object":[${'0,'.repeat(MIB)}0]}}`, 'the review has more than 500000 values'],
  ])('that is %s is 400', async (_, text, problem) => {
    expect(await read(requestOf(text))).toBe(`400 ${problem}`);
    expect(await read(requestOf(text, text.length))).toBe(`400 ${problem}`);
  });

  test('whose first kilobyte is no review is not read further', async () => {
    const { body, taken } = streamOf('x'.repeat(4 * MIB));
    expect(await read(requestOf(body, 4 * MIB))).toMatch(/^400 /);
    expect(taken.bytes).toBeLessThan(256 * 1024);
  });
});

interface SendOptions {
  readonly signal?: AbortSignal;
  readonly namespace?: string;
  /** Whether the review waits for the cluster from its beginning. */
  readonly waits?: boolean;
}

/** Reads bodies that stay in use until the test ends them. Lists those in use. */
function scenario() {
  const readBody = createBodyReader();
  const inside: number[] = [];
  const done: Array<() => void> = [];
  const send = (id: number, length: number, { signal = never, namespace = '', waits = false }: SendOptions = {}) => {
    const { body, taken } = streamOf(reviewOf(length, namespace));
    const answer = readBody(requestOf(body, length), signal, async (_, beginWait) => {
      inside.push(id);
      if (waits) beginWait(namespace);
      await new Promise<void>((resolve) => {
        done[id] = resolve;
      });
      inside.splice(inside.indexOf(id), 1);
      return id;
    });
    return { answer, taken };
  };
  const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
  return { inside, done, send, settled };
}

describe('of many bodies', () => {
  test('one large one is read and validated at a time, and one piece of the others; small ones do not wait for it', async () => {
    const { inside, done, send, settled } = scenario();
    const large = [0, 1, 2].map((id) => send(id, 2 * MIB));
    const small = send(3, 1000);
    await expect.poll(() => inside.toSorted()).toEqual([0, 3]);
    await settled();
    expect(inside.toSorted()).toEqual([0, 3]);
    expect(large.slice(1).map(({ taken }) => taken.bytes)).toEqual([PIECE, PIECE]);
    for (const id of [0, 1, 2]) {
      await expect.poll(() => inside).toContain(id);
      done[id]?.();
      expect(await large[id]?.answer).toBe(id);
    }
    done[3]?.();
    expect(await small.answer).toBe(3);
  });

  test('small ones of together 8 MiB are read and validated at a time', async () => {
    const { inside, done, send, settled } = scenario();
    const sent = Array.from({ length: 40 }, (_, id) => send(id, 512 * 1024));
    await expect.poll(() => inside.length).toBe(16);
    await settled();
    expect(inside).toHaveLength(16);
    for (const [id, { answer }] of sent.entries()) {
      await expect.poll(() => inside).toContain(id);
      done[id]?.();
      await answer;
      expect(inside.length).toBeLessThanOrEqual(16);
    }
  });

  test('large ones of one namespace do not delay other namespaces, while they are validated and while they wait', async () => {
    const { inside, done, send, settled } = scenario();
    const evil = Array.from({ length: 8 }, (_, id) => send(id, 2 * MIB, { namespace: 'evil', waits: id % 2 === 0 }));
    const end = async (id: number) => {
      done[id]?.();
      await evil[id]?.answer;
    };
    await expect.poll(() => inside).toEqual([0]);
    const other = send(8, 2 * MIB, { namespace: 'other', waits: true });
    await expect.poll(() => inside).toEqual([0, 8]);
    await end(0);
    // The next one of the same namespace is validated: a third namespace comes directly after it.
    await expect.poll(() => inside).toEqual([8, 1]);
    const third = send(9, 2 * MIB, { namespace: 'third' });
    await settled();
    await end(1);
    await expect.poll(() => inside).toContain(9);
    done[8]?.();
    done[9]?.();
    expect(await Promise.all([other.answer, third.answer])).toEqual([8, 9]);
    for (const id of [2, 3, 4, 5, 6, 7]) {
      await expect.poll(() => inside).toEqual([id]);
      await end(id);
    }
  });

  test('large ones of together 8 MiB that wait for the cluster do not delay others', async () => {
    const { inside, done, send, settled } = scenario();
    const sent = [0, 1, 2, 3].map((id) => send(id, 3 * MIB, { namespace: `n${id}`, waits: true }));
    await expect.poll(() => inside).toEqual([0, 1, 2]);
    await settled();
    expect(inside).toEqual([0, 1, 2]);
    // The third one has kept its place.
    done[0]?.();
    await sent[0]?.answer;
    await settled();
    expect(inside).toEqual([1, 2]);
    done[2]?.();
    await expect.poll(() => inside).toEqual([1, 3]);
    for (const id of [1, 3]) done[id]?.();
    expect(await Promise.all(sent.map(({ answer }) => answer))).toEqual([0, 1, 2, 3]);
  });

  test('one whose deadline passes while it waits leaves its place to the next', async () => {
    const { inside, done, send } = scenario();
    const first = send(0, 2 * MIB);
    await expect.poll(() => inside).toEqual([0]);
    const late = new AbortController();
    const second = send(1, 2 * MIB, { signal: late.signal });
    const third = send(2, 2 * MIB);
    await expect.poll(() => second.taken.bytes).toBe(PIECE);
    late.abort();
    await expect(second.answer).rejects.toThrow('the review waited for other reviews until its timeout');
    done[0]?.();
    await first.answer;
    await expect.poll(() => inside).toEqual([2]);
    done[2]?.();
    expect(await third.answer).toBe(2);
  });

  test('one that is never sent to its end leaves its place to the next', async () => {
    const { inside, done, send } = scenario();
    const readBody = createBodyReader();
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) });
    await expect(readBody(requestOf(broken, 2 * MIB), never, lengthOf)).rejects.toThrow('gone');
    const stuck = new ReadableStream({ pull: () => new Promise(() => {}) });
    await expect(readBody(requestOf(stuck, 2 * MIB), AbortSignal.timeout(20), lengthOf)).rejects.toThrow();
    expect(await readBody(requestOf(reviewOf(2 * MIB), 2 * MIB), never, lengthOf)).toBe(2 * MIB);
    const short = 512 * 1024;
    const stalled = Array.from({ length: 16 }, () => {
      const body = new ReadableStream({ pull: () => new Promise(() => {}) });
      return readBody(requestOf(body, short), AbortSignal.timeout(20), lengthOf);
    });
    const next = readBody(requestOf(reviewOf(short), short), never, lengthOf);
    for (const { status } of await Promise.allSettled(stalled)) expect(status).toBe('rejected');
    expect(await next).toBe(short);
    const { answer } = send(0, 2 * MIB);
    await expect.poll(() => inside).toEqual([0]);
    done[0]?.();
    expect(await answer).toBe(0);
  });
});
