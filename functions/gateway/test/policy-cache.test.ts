import { describe, expect, test } from 'vitest';
import { ok } from '#core/failure/result.ts';
import { policiesOf } from '../../../test/doubles/policies.ts';
import { keyRecord } from '../../../test/gateway/instance.ts';
import { createTime, settleDown } from '../../../test/gateway/time.ts';
import { createPolicyCache } from '../caller/policy-cache.ts';

function open(find: (hash: string, call: number) => Promise<ReturnType<typeof keyRecord> | undefined>) {
  const time = createTime();
  const asked: string[] = [];
  const queries: Array<ReadonlyArray<string>> = [];
  const findAnswer = createPolicyCache({
    policies: {
      find: async (hashes) => {
        queries.push(hashes);
        const found = hashes.map(async (hash) => {
          asked.push(hash);
          return [hash, await find(hash, asked.length)] as const;
        });
        return new Map(await Promise.all(found));
      },
    },
    clock: time,
    timer: time.timer,
  });
  const findPolicy = async (hash: string) => {
    const found = await findAnswer(hash);
    return found.ok ? ok(found.value.record) : found;
  };
  return { findPolicy, asked, queries, time };
}

const known = keyRecord();
const away = () => Promise.reject(new Error('connection refused'));

describe('a key policy', () => {
  test('is read once for all concurrent requests', async () => {
    const { findPolicy, asked } = open(async () => known);
    const found = await Promise.all([1, 2, 3].map(() => findPolicy('a')));
    expect(found).toEqual([1, 2, 3].map(() => ({ ok: true, value: known })));
    expect(asked).toEqual(['a']);
  });

  test('is never older than five seconds', async () => {
    const { findPolicy, asked, time } = open(async (_, call) => (call === 1 ? known : keyRecord({ blocked: true })));
    await findPolicy('a');
    await time.pass(2_999);
    expect(await findPolicy('a')).toMatchObject({ value: { key: { blocked: false } } });
    expect(asked).toHaveLength(1);
    await time.pass(2_001);
    expect(await findPolicy('a')).toMatchObject({ value: { key: { blocked: true } } });
  });

  test('is read again before its end, while the old one serves, so that no request waits', async () => {
    const { findPolicy, asked, time } = open((_, call) =>
      call === 1 ? Promise.resolve(known) : new Promise(() => {}),
    );
    await findPolicy('a');
    await time.pass(3_000);
    expect(await findPolicy('a')).toEqual({ ok: true, value: known });
    expect(await findPolicy('a')).toEqual({ ok: true, value: known });
    expect(asked).toHaveLength(2);
  });

  test('serves for five seconds without the database, and then is unknown', async () => {
    const { findPolicy, time } = open((_, call) => (call === 1 ? Promise.resolve(known) : away()));
    await findPolicy('a');
    await time.pass(4_999);
    expect(await findPolicy('a')).toEqual({ ok: true, value: known });
    await time.pass(1);
    expect(await findPolicy('a')).toEqual({ ok: false, failure: 'connection refused' });
  });

  test('that is unknown is kept for only one second', async () => {
    const { findPolicy, asked, time } = open(async (_, call) => (call === 1 ? undefined : known));
    expect(await findPolicy('a')).toEqual({ ok: true, value: undefined });
    await time.pass(999);
    expect(await findPolicy('a')).toEqual({ ok: true, value: undefined });
    expect(asked).toHaveLength(1);
    await time.pass(1);
    expect(await findPolicy('a')).toEqual({ ok: true, value: known });
  });

  test('that was deleted is dropped with its next record', async () => {
    const { findPolicy, time } = open(async (_, call) => (call === 1 ? known : undefined));
    await findPolicy('a');
    await time.pass(3_500);
    await findPolicy('a');
    await settleDown();
    expect(await findPolicy('a')).toEqual({ ok: true, value: undefined });
  });

  test('lets each request wait for at most 0.9 s; a late answer serves the next requests', async () => {
    const answer = Promise.withResolvers<typeof known>();
    const { findPolicy, asked, time } = open(() => answer.promise);
    const first = findPolicy('a');
    await time.pass(500);
    const second = findPolicy('a');
    await time.pass(350);
    expect(time.waiting()).toBeGreaterThan(0);
    await time.pass(50);
    expect(await first).toEqual({ ok: false, failure: 'the database did not answer in 900 ms' });
    answer.resolve(known);
    expect(await second).toEqual({ ok: true, value: known });
    expect(await findPolicy('a')).toEqual({ ok: true, value: known });
    expect(asked).toHaveLength(1);
  });

  test('without an answer is read again two seconds later', async () => {
    const { findPolicy, asked, time } = open((_, call) =>
      call === 1 ? new Promise(() => {}) : Promise.resolve(known),
    );
    const first = findPolicy('a');
    for (const millis of [850, 50, 1_050, 50]) await time.pass(millis);
    expect(await first).toMatchObject({ ok: false });
    expect(await findPolicy('a')).toEqual({ ok: true, value: known });
    expect(asked).toHaveLength(2);
  });

  test('whose answer and whose deadline come together, after a pause of the process, is answered', async () => {
    const answer = Promise.withResolvers<typeof known>();
    const { findPolicy, time } = open(() => answer.promise);
    const first = findPolicy('a');
    await time.pass(3_000);
    answer.resolve(known);
    expect(await first).toEqual({ ok: true, value: known });
  });

  test('is read again when the clock was set back', async () => {
    const { findPolicy, asked, time } = open(async () => known);
    await findPolicy('a');
    await time.pass(-10_000);
    await findPolicy('a');
    expect(asked).toHaveLength(2);
  });

  test('that is unknown waits with all others for one query, and a known one does not wait for that query', async () => {
    const pending: Array<() => void> = [];
    const { findPolicy, queries, time } = open((hash) =>
      hash === 'a' ? Promise.resolve(known) : new Promise((resolve) => pending.push(() => resolve(undefined))),
    );
    await findPolicy('a');
    const flood = Array.from({ length: 1_500 }, (_, index) => findPolicy(`made up ${index}`));
    await settleDown();
    // Another query begins only after 2 ms.
    expect(queries.slice(1)).toEqual([['made up 0']]);
    await time.pass(2);
    expect(queries.map(({ length }) => length)).toEqual([1, 1, 1_000]);
    // The oldest of the waiting look-ups fail first.
    expect(await flood[1]).toEqual({ ok: false, failure: 'too many keys wait for a look-up' });
    await time.pass(5_000);
    expect(await findPolicy('a')).toEqual({ ok: true, value: known });
    for (const answer of pending.splice(0)) answer();
    await settleDown();
    expect(queries.map(({ length }) => length)).toEqual([1, 1, 1_000, 1]);
  });

  test('is found within two queries in a flood of made-up key values of the right form', async () => {
    const good = (hash: string) => hash.startsWith('good');
    let answer = () => {};
    const { findPolicy, queries, time } = open(
      (hash) =>
        new Promise((resolve) => {
          const before = answer;
          answer = () => {
            before();
            resolve(good(hash) ? known : undefined);
          };
        }),
    );
    const late: string[] = [];
    const found: unknown[] = [];
    /** 2,000 made-up keys a second, and 50 good ones; each query of the database takes 10 ms. */
    for (let millis = 0; millis < 2_000; millis += 1) {
      void findPolicy(`made up ${millis}`);
      void findPolicy(`made up as well ${millis}`);
      if (millis % 20 === 0) {
        const [hash, began] = [`good ${millis}`, time.now()];
        const ask = findPolicy(hash).then((result) => {
          found.push(result);
          if (time.now() - began > 20) late.push(hash);
        });
        ask.catch(() => late.push(hash));
      }
      if (millis % 10 === 9) {
        const answered = answer;
        answer = () => {};
        answered();
        await new Promise(setImmediate);
      }
      time.tick(1);
    }
    answer();
    await settleDown();
    expect([found.length, late]).toEqual([100, []]);
    for (const result of found) expect(result).toEqual({ ok: true, value: known });
    expect(queries.length).toBeLessThan(500);
  });

  test('shares a query with those of the next 2 ms, if the previous query had several', async () => {
    const { findPolicy, queries, time } = open(async () => known);
    const answers = ['a', 'b', 'c'].map(findPolicy);
    await settleDown();
    expect(queries).toEqual([['a'], ['b', 'c']]);
    answers.push(findPolicy('d'));
    await time.pass(1);
    expect(queries).toHaveLength(2);
    answers.push(findPolicy('e'));
    await time.pass(1);
    expect(queries).toEqual([['a'], ['b', 'c'], ['d', 'e']]);
    expect(await Promise.all(answers)).toEqual(Array(5).fill({ ok: true, value: known }));
    await time.pass(2);
    await findPolicy('f');
    await findPolicy('g');
    expect(queries).toHaveLength(5);
  });

  test('that is requested again becomes the newest, so that a flood without answers evicts others', async () => {
    const { findPolicy, queries } = open(() => new Promise(() => {}));
    const flood = (name: string) => {
      for (let index = 0; index < 900; index += 1) void findPolicy(`${name} ${index}`);
    };
    flood('first');
    void findPolicy('good');
    flood('second');
    const asked = findPolicy('good').then(() => 'answered');
    for (let index = 0; index < 900; index += 1) void findPolicy(`third ${index}`);
    await settleDown();
    expect(await Promise.race([asked, Promise.resolve('waits')])).toBe('waits');
    expect(queries).toHaveLength(1);
  });

  test('is kept with others as long as all together are not too large', async () => {
    const models = Array.from({ length: 256 }, (_, place) => `${place}`.padStart(1_024, 'm'));
    const large = keyRecord({ models });
    const { findPolicy, asked } = open(async () => large);
    for (let key = 0; key < 50; key += 1) await findPolicy(`key ${key}`);
    for (const key of [49, 0]) await findPolicy(`key ${key}`);
    expect(asked.slice(50)).toEqual(['key 0']);
  });

  test('stays known in a flood of unknown keys', async () => {
    const { findPolicy, asked } = open(async (hash) => (hash === 'a' ? known : undefined));
    await findPolicy('a');
    for (let index = 0; index < 20_000; index += 1) await findPolicy(`made up ${index}`);
    const before = asked.length;
    await findPolicy('a');
    expect(asked).toHaveLength(before);
  });

  test('of a small record is found before large ones, of which each query reads one', async () => {
    const queries: string[][] = [];
    const time = createTime();
    const findPolicy = createPolicyCache({
      policies: {
        find: async (hashes) => {
          queries.push([...hashes]);
          const small = hashes.filter((hash) => !hash.startsWith('large'));
          const read = small.length > 0 ? small : hashes.slice(0, 1);
          const recordOf = (hash: string) => (hash === 'unknown' ? undefined : known);
          return new Map(hashes.map((hash) => [hash, read.includes(hash) ? recordOf(hash) : { size: 1_000 }]));
        },
      },
      clock: time,
      timer: time.timer,
    });
    const large = ['large 1', 'large 2', 'large 3'].map(findPolicy);
    const [small, unknown] = await Promise.all(['small', 'unknown'].map(findPolicy));
    expect([small, unknown]).toMatchObject([{ value: { record: known } }, { ok: true, value: { record: undefined } }]);
    expect(await Promise.all(large)).toMatchObject(Array(3).fill({ ok: true, value: { record: known } }));
    const position = (hash: string) => queries.findLastIndex((hashes) => hashes.includes(hash));
    expect(position('small')).toBeLessThan(Math.max(...['large 1', 'large 2', 'large 3'].map(position)));
  });

  test('of ordinary size waits for no query of large records, of which one runs', async () => {
    const time = createTime();
    const large = keyRecord({ models: Array.from({ length: 512 }, (_, index) => `${index}`.padEnd(64, 'x')) });
    const policies = policiesOf((hash) => (hash.startsWith('large') ? large : known));
    /** Queries of large records that run. */
    const running: Array<() => void> = [];
    const findPolicy = createPolicyCache({
      policies: {
        find: async (...query) => {
          const found = await policies.find(...query);
          const isLarge = [...found.values()].some((record) => record?.key?.models.length === 512);
          return isLarge ? new Promise((resolve) => running.push(() => resolve(found))) : found;
        },
      },
      clock: time,
      timer: time.timer,
    });
    const ask = async (hash: string) => {
      const found = findPolicy(hash);
      await settleDown();
      return Promise.race([found, Promise.resolve('waits')]);
    };
    for (let index = 0; index < 20; index += 1) expect(await ask(`large ${index}`)).toBe('waits');
    expect(await ask('unseen')).toMatchObject({ ok: true, value: { record: known } });
    expect(running).toHaveLength(1);
    running.pop()?.();
    await settleDown();
    // Large records that are refreshed have no other query.
    running.pop()?.();
    await settleDown();
    await time.pass(3_000);
    for (let index = 0; index < 20; index += 1) expect(await ask(`large ${index}`)).toMatchObject({ ok: true });
    expect(running).toHaveLength(1);
    expect(await ask('unseen too')).toMatchObject({ ok: true, value: { record: known } });
  });

  test('that waits for its query fails if that query fails', async () => {
    const time = createTime();
    let isAway = false;
    const findPolicy = createPolicyCache({
      policies: {
        find: async (hashes) => {
          if (isAway) throw new Error('connection refused');
          isAway = true;
          return new Map([[hashes[0] ?? '', known]]);
        },
      },
      clock: time,
      timer: time.timer,
    });
    // The first look-up has a query of its own; the others share one.
    const answers = await Promise.all(['a', 'b', 'c'].map(findPolicy));
    expect(answers.filter(({ ok: isOk }) => isOk)).toHaveLength(1);
    expect(answers.find(({ ok: isOk }) => !isOk)).toEqual({ ok: false, failure: 'connection refused' });
  });

  test('of ordinary size stays in memory, however many large ones are requested', async () => {
    const models = Array.from({ length: 512 }, (_, index) => `${index}`.padEnd(64, 'x'));
    const large = keyRecord({ models });
    const { findPolicy, asked } = open(async (hash) => (hash === 'a' ? known : large));
    await findPolicy('a');
    for (let index = 0; index < 400; index += 1) await findPolicy(`large ${index}`);
    await findPolicy('a');
    expect(asked.filter((hash) => hash === 'a')).toHaveLength(1);
    const before = asked.length;
    await findPolicy('large 0');
    expect(asked.length).toBe(before + 1);
  });
});
