import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createTime } from '../../../test/gateway/time.ts';
import { createMemoryBudget, limitsIn, type MemoryLimits, type RequestMemory } from '../request/memory-budget.ts';

const MIB = 2 ** 20;
/** 64 MiB for 8 MiB of bodies each, and 100 requests. */
const LIMITS: MemoryLimits = {
  bytes: 64 * MIB,
  body: 8 * MIB,
  reply: 16 * MIB,
  requests: 100,
  maxRequestTime: Number.POSITIVE_INFINITY,
};

const keyIn = (scopeId: string, namespace = `of ${scopeId}`) => ({ scopeId, object: { namespace, name: scopeId } });

function open(limits: Partial<MemoryLimits> = {}) {
  const time = createTime();
  const room = createMemoryBudget({ ...LIMITS, ...limits }, time);
  /** A request of the key that is served; undefined: it is refused. */
  const enter = (key: string, namespace = `of ${key}`): RequestMemory | undefined => {
    const share = room.open();
    return share.enter(keyIn(key, namespace)) ? share : undefined;
  };
  /** The MiB that this number of requests of the key gets, if each takes one. */
  const fill = (key: string, requests = 200): number => {
    const shares = Array.from({ length: requests }, () => room.open());
    return shares.filter((share) => share.enter(keyIn(key)) && share.take(MIB)).length;
  };
  return { ...time, enter, fill };
}

describe('room', () => {
  test.each([
    [1024, { body: 32, reply: 56, bytes: 224, requests: 2048 }],
    [512, { body: 16, reply: 24, bytes: 96, requests: 1024 }],
    [8192, { body: 32, reply: 64, bytes: 2016, requests: 16384 }],
    [160, { body: 5, reply: 2, bytes: 8, requests: 320 }],
  ])('of a Pod with %d MiB', (limit, { body, reply, bytes, requests }) => {
    const limits = limitsIn({ limit: limit * MIB, own: 128 * MIB });
    expect([limits.body, limits.reply, limits.bytes].map((size) => size / MIB)).toEqual([body, reply, bytes]);
    expect(limits.requests).toBe(requests);
    // The largest body and the largest reply, which is there twice while it is read, find room in an empty process.
    for (const size of [limits.body, 2 * limits.reply]) {
      const share = createMemoryBudget(limits, createTime()).open();
      expect([share.enter(keyIn('a')), share.take(size)]).toEqual([true, true]);
    }
  });

  test.each([
    // The heap of Node 24 in a container of 1, 4 and 8 GiB.
    [1024, 560, { bytes: 224, requests: 2048 }],
    [4096, 2240, { bytes: 992, requests: 8192 }],
    [8192, 2240, { bytes: 1120, requests: 8960 }],
  ])('of a Pod with %d MiB whose heap has at most %d MiB', (limit, heap, { bytes, requests }) => {
    const limits = limitsIn({ limit: limit * MIB, heap: heap * MIB, own: 128 * MIB });
    expect([limits.bytes / MIB, limits.requests]).toEqual([bytes, requests]);
  });

  test('is never exceeded by any sequence of requests, and is free after all of them', () => {
    const step = fc.record({ who: fc.nat(9), bytes: fc.nat(9 * MIB), does: fc.constantFrom('take', 'give', 'leave') });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { enter } = open();
        const shares = Array.from({ length: 10 }, (_, at) => enter(`key ${at % 3}`));
        const taken = shares.map(() => 0);
        for (const { who, bytes, does } of steps) {
          const [share, before = 0] = [shares[who], taken[who]];
          if (does === 'take' && share?.take(bytes)) taken[who] = before + bytes;
          if (does === 'give') share?.giveBack(bytes);
          if (does === 'give') taken[who] = Math.max(0, before - bytes);
          if (does === 'leave') share?.leave();
          if (does === 'leave') taken[who] = 0;
          expect(share?.bytes).toBe(taken[who]);
          expect(taken.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(LIMITS.bytes);
        }
        for (const share of shares) share?.leave();
        expect(enter('key 0')?.take(42 * MIB)).toBe(true);
      }),
    );
  });

  test('is left to others by a key that takes its maximum', () => {
    const { fill } = open();
    const [first, second, third] = [fill('greedy', 60), fill('other', 20), fill('third', 10)];
    expect([first, second, third]).toEqual([42, 10, 3]);
  });

  test('is left to small bodies by large ones, of whatever keys', () => {
    const { enter } = open({ requests: 10_000 });
    for (let key = 0; key < 100; key += 1) enter(`key ${key}`)?.take(8 * MIB);
    for (let key = 0; key < 2_000; key += 1) enter(`key ${key}`)?.take(193 * 1024);
    const fill = (key: string) => {
      let small = 0;
      while (enter(key)?.take(192 * 1024)) small += 1;
      return small;
    };
    expect([fill('small'), fill('other'), fill('third')]).toEqual([32, 8, 2]);
  });

  test('is left to others by a key with only small bodies', () => {
    const { enter } = open({ requests: 10_000 });
    const fill = (key: string) => {
      let kept = 0;
      while (enter(key)?.take(64 * 1024)) kept += 1;
      return kept;
    };
    // Of 1024.
    expect([fill('greedy'), fill('other')]).toEqual([768, 192]);
  });

  test('is left to others by a key and a namespace whose requests take more to continue', () => {
    for (const namespace of ['of greedy', 'greedy']) {
      const { enter } = open();
      const keys = Array.from({ length: 70 }, (_, at) =>
        enter(namespace === 'greedy' ? `key ${at}` : 'greedy', namespace),
      );
      const shares = keys.filter((share) => share?.take(MIB));
      for (const share of shares) while (share?.take(MIB, 'increased')) expect(share.bytes).toBeLessThan(LIMITS.bytes);
      for (const share of shares) share?.take(100_000, 'increased');
      expect(enter('other', 'other')?.take(250_000)).toBe(true);
    }
  });

  test('has a maximum number of requests', () => {
    const { enter } = open({ requests: 8 });
    const shares = Array.from({ length: 8 }, (_, key) => enter(`key ${key}`));
    expect([shares.includes(undefined), enter('b')]).toEqual([false, undefined]);
    shares[5]?.leave();
    // A second call of `leave` does nothing.
    shares[5]?.leave();
    expect([enter('b') === undefined, enter('c')]).toEqual([false, undefined]);
  });

  test('has a maximum number of requests of one key, which leaves some to others', () => {
    const { enter } = open();
    const enterAll = (key: string) => Array.from({ length: 100 }, () => enter(key)).filter((share) => share);
    const [greedy, ...others] = ['greedy', 'a', 'b', 'c', 'd'].map(enterAll);
    expect([greedy, ...others].map((shares) => shares?.length)).toEqual([75, 19, 5, 1, 0]);
    for (const share of greedy?.slice(0, 40) ?? []) share?.leave();
    expect(enterAll('d')).toHaveLength(30);
  });

  test('has a maximum number of requests and bytes of all keys of one namespace', () => {
    const { enter } = open();
    const keys = Array.from({ length: 200 }, (_, at) => enter(`key ${at % 10}`, 'greedy'));
    const shares = keys.filter((share) => share !== undefined);
    expect(shares).toHaveLength(88);
    expect(shares.filter((share) => share.take(MIB))).toHaveLength(49);
    expect(enter('other key', 'other')?.take(5 * MIB)).toBe(true);
    for (const share of shares) share.leave();
    expect(enter('key 0', 'greedy')?.take(30 * MIB)).toBe(true);
  });

  test('is free again after requests that the platform ends without a notice', () => {
    const { enter, tick } = open({ requests: 4, maxRequestTime: 60_000 });
    for (let dead = 0; dead < 4; dead += 1) enter(`key ${dead}`)?.take(8 * MIB);
    tick(59_999);
    expect(enter('a')).toBeUndefined();
    tick(1);
    const late = enter('a');
    expect([late?.take(8 * MIB), late?.bytes]).toEqual([true, 8 * MIB]);
  });
});

describe('large bodies', () => {
  test('of one key are at most 64 MiB and then 8 MiB a second, apart from those of other keys', () => {
    const { enter, tick } = open();
    const bring = (key: string, bytes = 32 * MIB) => {
      const share = enter(key);
      const isTaken = share?.countWork(bytes);
      share?.leave();
      return isTaken;
    };
    expect([bring('a'), bring('a'), bring('a')]).toEqual([true, true, false]);
    expect([bring('b'), bring('a', MIB)]).toEqual([true, true]);
    tick(3_999);
    expect(bring('a')).toBe(false);
    tick(1);
    expect([bring('a'), bring('a')]).toEqual([true, false]);
    tick(60_000);
    expect([bring('a'), bring('a'), bring('a')]).toEqual([true, true, false]);
  });

  test('of all keys of a namespace are at most twice as many, and delay no other namespace', () => {
    const { enter, tick } = open();
    const bring = (key: string, namespace: string) => enter(key, namespace)?.countWork(32 * MIB);
    const flood = (time: number) => Array.from({ length: 10 }, (_, at) => bring(`${time} ${at}`, 'flood'));
    expect(flood(0).filter((isTaken) => isTaken)).toHaveLength(4);
    expect(bring('other', 'other')).toBe(true);
    tick(2_000);
    expect(flood(1).filter((isTaken) => isTaken)).toHaveLength(1);
  });
});
