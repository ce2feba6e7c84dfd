// Does the schedule's program ask until nothing is under way, and not for ever?
import { expect, test } from 'vitest';
import { resyncUntilDone } from '../resync.ts';

/** Reports and failures, one after the other; the last one again and again. */
async function run(...answers: ReadonlyArray<object | Error>) {
  let now = 0;
  const asked: number[] = [];
  const ask = async () => {
    asked.push(now);
    const answer = answers[asked.length - 1] ?? answers.at(-1);
    if (answer instanceof Error) throw answer;
    return JSON.stringify(answer);
  };
  const ended = await resyncUntilDone({
    ask,
    now: () => now,
    pause: async (millis) => {
      now += millis;
    },
  }).catch((error: Error) => error.message);
  return { asked, ended };
}

test('one resync is enough where it did everything: the Pod lives for a second', async () => {
  const report = { observed: { VirtualKey: 1 }, actions: { WriteStatus: 1 }, failed: {} };
  expect(await run(report)).toEqual({ asked: [0], ended: JSON.stringify(report) });
});

test('while something is under way it asks again every five seconds', async () => {
  const { asked, ended } = await run({ underWay: 2 }, { underWay: 1 }, { actions: {} });
  expect({ asked, ended }).toEqual({ asked: [0, 5_000, 10_000], ended: '{"actions":{}}' });
});

test('after 50 s the next minute continues', async () => {
  const { asked, ended } = await run({ underWay: 1 });
  expect(asked.at(-1)).toBeLessThanOrEqual(50_000);
  expect(asked.length).toBeGreaterThan(9);
  expect(ended).toBe('{"underWay":1}');
});

test('a function that is not there yet, or that could not read the cluster, is asked again a second later', async () => {
  const { asked, ended } = await run(new Error('ECONNREFUSED'), new Error('503'), { actions: {} });
  expect({ asked, ended }).toEqual({ asked: [0, 1_000, 2_000], ended: '{"actions":{}}' });
});

test('a function that is away for all of that time is a failed run that says why', async () => {
  const { asked, ended } = await run(new Error('reconcile answered 503: the cluster could not be read'));
  expect(asked.length).toBeGreaterThan(9);
  expect(ended).toBe('reconcile answered 503: the cluster could not be read');
});
