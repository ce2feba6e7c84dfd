// CPU and calls of a Redis, on the other core.
import { spawnSync } from 'node:child_process';
import { Redis } from 'ioredis';
import type { TestRedis } from '../support/redis.ts';
import { pins } from './pinned.ts';

export interface RedisWatch {
  /** Microseconds of CPU so far. */
  cpu(): Promise<number>;
  /** Scripts run so far: one per call of a ledger. */
  calls(): Promise<number>;
  close(): void;
}

/** What the server reports. The server is pinned to the other core where possible. */
export async function watchRedis({ connection: { host, port } }: TestRedis): Promise<RedisWatch> {
  const redis = new Redis({ host, port, protocol: 2 });
  const pid = /process_id:(\d+)/.exec(await redis.info('server'))?.[1] ?? '';
  if (pins) spawnSync('taskset', ['-a', '-cp', '1', pid]);
  return {
    cpu: async () => {
      const info = await redis.info('cpu');
      const seconds = ['user', 'sys'].map((name) => Number(new RegExp(`used_cpu_${name}:([0-9.]+)`).exec(info)?.[1]));
      return seconds.reduce((sum, each) => sum + each, 0) * 1_000_000;
    },
    calls: async () => {
      const info = await redis.info('commandstats');
      return [...info.matchAll(/cmdstat_(?:eval|evalsha|fcall):calls=(\d+)/g)].reduce(
        (sum, [, n]) => sum + Number(n),
        0,
      );
    },
    close: () => redis.disconnect(),
  };
}
