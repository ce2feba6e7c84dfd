// Limits of a Node process for data of others: replies of databases and counter stores, and objects.
import { getHeapStatistics } from 'node:v8';

/** Bytes: a fifth of the heap that the process may have (`--max-old-space-size`). */
export const replyMemory = (): number => getHeapStatistics().heap_size_limit / 5;

/** Bytes of objects of one namespace: a quarter of that heap. */
export const objectMemory = (): number => getHeapStatistics().heap_size_limit / 4;
