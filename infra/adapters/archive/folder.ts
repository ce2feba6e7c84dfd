// The archive in a folder (`file:///folder`): a volume of the Pod, or a folder of the machine.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Archive } from '#core/ports/archive.ts';

export function createFolder(url: string): Archive {
  const folder = fileURLToPath(url);
  return {
    url,
    write: async (path, bytes, signal) => {
      const target = join(folder, path);
      const draft = `${target}.${randomUUID()}.draft`;
      try {
        await mkdir(dirname(target), { recursive: true });
        await writeDurably(draft, bytes, signal);
        await rename(draft, target);
      } catch (error) {
        // A disk that takes no write may also not remove the draft. Readers of *.parquet do not see it.
        await rm(draft, { force: true }).catch(() => undefined);
        throw toErrorWithAdvice(error, url);
      }
    },
    read: (path, signal) =>
      readFile(join(folder, path), { signal }).catch((error) => {
        if (error.code === 'ENOENT') return undefined;
        throw toErrorWithAdvice(error, url);
      }),
  };
}

/** When this resolves, the bytes survive a power loss. */
async function writeDurably(path: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  await using file = await open(path, 'wx');
  await file.writeFile(bytes, { signal });
  await file.sync();
}

const toErrorWithAdvice = (error: unknown, url: string): Error =>
  new Error(
    `${url}: ${reasonOf(error)}. Check that the folder is a volume of the reconciler's Pod, writable and not full`,
    {
      cause: error,
    },
  );
