// Where do tests write?
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that goes when the test process ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-test-'));
  // PostgreSQL does not run as root: whom it runs as must be able to get here.
  chmodSync(folder, 0o755);
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
