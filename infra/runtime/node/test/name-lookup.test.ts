// Look-ups of names of many owners, some of whom name what nobody answers.
import { expect, test } from 'vitest';
import { createNameLookup } from '../name-lookup.ts';

const OPTIONS = { all: true };

/** A platform that answers `good…` names immediately when asked to, and does four look-ups at the same time. */
function stage(atOnce = 4) {
  const asked: Array<{ readonly name: string; answer(): void }> = [];
  let now = 0;
  const lookup = createNameLookup({
    lookup: (name, _options, callback) =>
      void asked.push({ name, answer: () => callback(null, [{ address: '10.0.0.1', family: 4 }], 4) }),
    now: () => now,
    atOnce,
  });
  const answers: string[] = [];
  return {
    answers,
    names: () => asked.map(({ name }) => name),
    ask: (name: string) => lookup(name, OPTIONS, (error) => void answers.push(error === null ? name : `no ${name}`)),
    /** Answers the first look-up of this name, so many milliseconds later. */
    answer: (name: string, after = 0) => {
      now += after;
      const [found] = asked.splice(
        asked.findIndex((one) => one.name === name),
        1,
      );
      found?.answer();
    },
  };
}

test('names that nobody answers leave room for names that were answered', () => {
  const { ask, answer, answers, names } = stage();
  ask('good');
  answer('good');
  for (let at = 0; at < 20; at += 1) ask(`silent-${at}`);
  expect(names()).toHaveLength(2);
  ask('good');
  answer('good');
  expect(answers).toEqual(['good', 'good']);
});

test('of names that were slow the last time one is looked up at a time, and new names do not wait for it', () => {
  const { ask, answer, answers, names } = stage();
  for (const name of ['slow-1', 'slow-2']) ask(name);
  for (const name of ['slow-1', 'slow-2']) answer(name, 5000);
  for (const name of ['slow-1', 'slow-2']) ask(name);
  expect(names()).toEqual(['slow-1']);
  ask('new');
  answer('new');
  expect(answers).toEqual(['slow-1', 'slow-2', 'new']);
  answer('slow-1');
  expect(names()).toEqual(['slow-2']);
});

test('a name that was slow and is answered soon again no longer waits for others', () => {
  const { ask, answer, names } = stage();
  for (const name of ['one', 'two']) ask(name);
  for (const name of ['one', 'two']) answer(name, 5000);
  ask('one');
  answer('one');
  ask('two');
  ask('one');
  expect(names()).toEqual(['two', 'one']);
});

test('the same question is asked once, and all get its answer', () => {
  const { ask, answer, answers, names } = stage();
  for (let at = 0; at < 3; at += 1) ask('silent');
  expect(names()).toEqual(['silent']);
  answer('silent', 5000);
  expect(answers).toEqual(['silent', 'silent', 'silent']);
});

test('new names take their turn, however few look-ups the platform does at the same time', () => {
  const { ask, answer, answers } = stage(1);
  for (const name of ['a', 'b', 'c']) ask(name);
  for (const name of ['a', 'b', 'c']) answer(name);
  expect(answers).toEqual(['a', 'b', 'c']);
});
