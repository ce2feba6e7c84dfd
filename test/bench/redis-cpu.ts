// CPU of a Redis, on the core where it disturbs least.
import { spawnSync } from 'node:child_process';
import { Redis } from 'ioredis';
import type { TestRedis } from '../redis.ts';
import { pins } from './pinned.ts';

export interface CpuWatch {
  /** Microseconds so far. */
  cpu(): Promise<number>;
  close(): void;
}

/** What the server says of its own CPU; it is put on the other core where it can be. */
export async function watchCpu({ connection: { host, port } }: TestRedis): Promise<CpuWatch> {
  const redis = new Redis({ host, port, protocol: 2 });
  const pid = /process_id:(\d+)/.exec(await redis.info('server'))?.[1] ?? '';
  if (pins) spawnSync('taskset', ['-a', '-cp', '1', pid]);
  const cpu = async (): Promise<number> => {
    const told = await redis.info('cpu');
    const seconds = ['user', 'sys'].map((name) => Number(new RegExp(`used_cpu_${name}:([0-9.]+)`).exec(told)?.[1]));
    return seconds.reduce((sum, each) => sum + each, 0) * 1_000_000;
  };
  return { cpu, close: () => redis.disconnect() };
}
