// Folders that tests write to.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];
process.once('exit', () => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** A folder that is removed when the test process ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-test-'));
  made.push(folder);
  // PostgreSQL does not run as root: its user must have access.
  chmodSync(folder, 0o755);
  return folder;
}
