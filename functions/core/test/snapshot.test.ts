// Snapshots that a gateway reads, and its messages for those that it cannot read.
import { expect, test } from 'vitest';
import { readSnapshot } from '../models/snapshot.ts';

test.each([
  ['{', 'is not JSON'],
  [
    '{"version":2,"instances":[]}',
    'is a snapshot of version 2, but this gateway reads 1: a later version of the operator wrote it; run the gateway of that version',
  ],
  ['{"version":0}', /^is a snapshot of version 0, .* an earlier version of the operator wrote it/],
  ['{"version":1}', /^is not a snapshot: instance: /],
  ['[]', /^is not a snapshot: /],
])('%s is met with one sentence', (text, sentence) => {
  const read = readSnapshot(text);
  expect(read.ok).toBe(false);
  if (!read.ok) expect(read.failure).toMatch(sentence);
});
