// The memory of a Node process that answers of databases and stores may take beyond what its instances need.
import { getHeapStatistics } from 'node:v8';

/** Bytes: a fifth of the heap that the process may have (`--max-old-space-size`). */
export const answerMemory = (): number => getHeapStatistics().heap_size_limit / 5;
