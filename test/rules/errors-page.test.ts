// docs/use/errors.md: a section for each code, which `doc_url` of an error links to.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { toReply } from '#core/failure/failure.ts';
import { EXAMPLES } from '#core/test/failure.fixture.ts';
import { anthropicErrors } from '../../functions/gateway/wire/dialects/error-format.ts';
import { documented } from '../platforms/documented.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/use/errors.md'), 'utf8');
const sections = new Map(
  [...page.matchAll(/^### `([a-z_]+)`\n\n(.*?)(?=^##)/gms)].map(([, code = '', text = '']) => [code, text]),
);

test.each(Object.values(EXAMPLES))('$code has a section with its status, its headers and what to do', (failure) => {
  const text = sections.get(failure.code) ?? '';
  const { status, headers } = toReply(failure);
  const [, statuses = ''] = /^\*\*([^*]+)\.\*\*/.exec(text) ?? [];
  expect(statuses.split(/, | or /)).toContain(String(status));
  expect(text).toContain('**Do this:**');
  if ('x-should-retry' in headers) expect(text).toContain('x-should-retry');
});

test('the page has no section for a code that the gateway does not have', () => {
  expect([...sections.keys()].sort()).toEqual(Object.keys(EXAMPLES).sort());
});

test('the shapes of the page have the members of a reply', () => {
  const shapeOf = (name: string) => JSON.parse(documented('docs/use/errors.md', name, 'json'));
  const { error, status } = toReply(EXAMPLES.budget_exceeded);
  const unstable = { message: '…', resets_at: 1795824000 };
  expect(shapeOf('shape')).toEqual({ error: { ...error, ...unstable } });
  const anthropic = JSON.parse(JSON.stringify(anthropicErrors.toBody({ ...error, ...unstable }, status)));
  expect(shapeOf('shape of Anthropic')).toEqual(anthropic);
});
