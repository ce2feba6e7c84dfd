// Snapshots that a gateway reads, and what it says of those that it does not.
import { expect, test } from 'vitest';
import { readSnapshot } from '../models/snapshot.ts';

test.each([
  ['{', 'is not JSON'],
  [
    '{"version":2,"instances":[]}',
    'is a snapshot of version 2, this gateway reads 1: a later version of the operator made it; run the gateway of that version',
  ],
  ['{"version":0}', /^is a snapshot of version 0, .* an earlier version of the operator made it/],
  ['{"version":1}', /^is not a snapshot: instance: /],
  ['[]', /^is not a snapshot: /],
])('%s is met with one sentence', (text, sentence) => {
  const read = readSnapshot(text);
  expect(read.ok).toBe(false);
  if (!read.ok) expect(read.failure).toMatch(sentence);
});
