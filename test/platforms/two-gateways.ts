// How do tests run the gateway twice on one store, as two replicas of a Deployment do?
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRedis, type TestRedis } from '../support/redis.ts';
import type { Mounts } from './mounts.ts';
import { type NodeProcess, startNode } from './node-process.ts';

export interface TwoGateways {
  readonly both: readonly [NodeProcess, NodeProcess];
  /** Ends the store; the gateways are whoever asked for them's to stop. */
  stopStore(): Promise<void>;
}

/** A Redis with a password, as instances have one. */
export const startStore = (): Promise<TestRedis> => startRedis(['--requirepass', 'secret'], 'secret');

/** The bundle twice on one Redis, with a journal each below `folder`. */
export async function startTwoGateways(
  bundle: string,
  mounts: Mounts,
  folder: string,
  redis?: TestRedis,
): Promise<TwoGateways> {
  const store = redis ?? (await startStore());
  const { host, port, password } = store.connection;
  const start = async (name: string) => {
    const at = (...names: string[]) => join(folder, name, ...names);
    for (const part of ['store', 'journal']) mkdirSync(at(part), { recursive: true });
    for (const [file, text] of Object.entries({ host, port, password })) writeFileSync(at('store', file), `${text}`);
    return startNode(bundle, { ...mounts, STORE_DIR: at('store'), JOURNAL_DIR: at('journal') });
  };
  return { both: await Promise.all([start('first'), start('second')]), stopStore: store.stop };
}
