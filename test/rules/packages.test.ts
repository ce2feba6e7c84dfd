// Packages are not in git: a link of the name `node_modules`, once checked out, would take their place.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('git keeps no node_modules, neither a folder nor a link', () => {
  const kept = execFileSync('git', ['ls-files', 'node_modules'], { cwd: join(import.meta.dirname, '../..') });
  expect(kept.toString()).toBe('');
});
