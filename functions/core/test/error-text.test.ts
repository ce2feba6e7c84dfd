import { expect, test } from 'vitest';
import { reasonAndCausesOf, reasonOf } from '../failure/error-text.ts';

const refused = new Error('connect ECONNREFUSED 127.0.0.1:5432');
const opening = new Error('opening the database', { cause: refused });

test.each([
  { of: 'an error', thrown: opening, alone: 'opening the database', whole: `opening the database: ${refused.message}` },
  { of: 'what is no error', thrown: 'no', alone: 'no', whole: 'no' },
  { of: 'nothing', thrown: undefined, alone: 'undefined', whole: 'undefined' },
  {
    of: 'an error caused by what is no error',
    thrown: new Error('asking', { cause: 'silence' }),
    alone: 'asking',
    whole: 'asking: silence',
  },
  {
    of: 'a name with two addresses that both refuse',
    thrown: new AggregateError([new Error('connect ECONNREFUSED ::1:1'), refused]),
    alone: `connect ECONNREFUSED ::1:1; ${refused.message}`,
    whole: `connect ECONNREFUSED ::1:1; ${refused.message}`,
  },
  {
    of: 'several parts that cannot be closed',
    thrown: Object.assign(new Error('An error was suppressed during disposal.'), {
      name: 'SuppressedError',
      error: refused,
      suppressed: opening,
    }),
    alone: `opening the database: ${refused.message}; ${refused.message}`,
    whole: `opening the database: ${refused.message}; ${refused.message}`,
  },
  {
    of: 'a fetch of such a name',
    thrown: new TypeError('fetch failed', { cause: new AggregateError([refused]) }),
    alone: 'fetch failed',
    whole: `fetch failed: ${refused.message}`,
  },
])('the text of $of has its message, and its causes if they are requested', ({ thrown, alone, whole }) => {
  expect(reasonOf(thrown)).toBe(alone);
  expect(reasonAndCausesOf(thrown)).toBe(whole);
});
