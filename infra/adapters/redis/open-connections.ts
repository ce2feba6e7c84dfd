// The connections of one store or probe. The library that makes them is loaded only with the first one (primary.ts).
import type { Redis } from 'ioredis';

/** All connections that are open or being opened. */
export interface OpenConnections {
  add(redis: Redis): void;
  /** Ends all connections but this one. */
  endOthers(redis: Redis): void;
  /** Ends all connections, also those that are opened later. */
  end(): void;
}

export function createOpenConnections(): OpenConnections {
  const opened = new Set<Redis>();
  let hasEnded = false;
  return {
    add(redis) {
      opened.add(redis);
      redis.once('end', () => opened.delete(redis));
      if (hasEnded) redis.disconnect();
    },
    endOthers(redis) {
      for (const other of opened) if (other !== redis) other.disconnect();
    },
    end() {
      hasEnded = true;
      for (const redis of opened) redis.disconnect();
    },
  };
}
