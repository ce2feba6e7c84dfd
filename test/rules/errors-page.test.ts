// docs/use/errors.md: what the gateway answers, code by code.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { toReply } from '#core/failure/failure.ts';
import { EXAMPLES } from '#core/test/failure.fixture.ts';

interface Row {
  readonly statuses: ReadonlyArray<number>;
  readonly text: string;
}

const page = readFileSync(join(import.meta.dirname, '../../docs/use/errors.md'), 'utf8');
const rows = new Map<string, Row>(
  [...page.matchAll(/^\| ([0-9, ]+) \| `([a-z_]+)` \| (.*) \|$/gm)].map(([, statuses = '', code = '', text = '']) => [
    code,
    { statuses: statuses.split(', ').map(Number), text },
  ]),
);

test.each(Object.values(EXAMPLES))('$code is in docs/use/errors.md, with its status and headers', (failure) => {
  const row = rows.get(failure.code);
  const { status, headers } = toReply(failure);
  expect(row?.statuses).toContain(status);
  for (const name of Object.keys(headers).filter((header) => header === 'x-should-retry'))
    expect(row?.text).toContain(name);
});

test('docs/use/errors.md names no code that the gateway does not have', () => {
  expect([...rows.keys()].sort()).toEqual(Object.keys(EXAMPLES).sort());
});
