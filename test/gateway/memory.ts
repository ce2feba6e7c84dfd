// How much memory does this process keep, when nothing is left to collect?
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Bytes in use by objects and buffers. */
export async function memory(): Promise<number> {
  // Finalizers run between two collections.
  for (let turn = 0; turn < 2; turn += 1) {
    collect();
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
