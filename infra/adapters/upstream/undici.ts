// How does a Node process speak to a provider? undici, one pool of connections per origin.
import { Pool } from 'undici';
import type { Upstream, UpstreamRequest } from '#core/ports/serving.ts';
import { ask } from './answer.ts';
import { toBroken } from './broken.ts';

export interface UndiciUpstream extends Upstream {
  /** Closes every connection; what is running is cut. */
  close(): Promise<void>;
}

/** Where a URL leads. */
interface Place {
  readonly pool: Pool;
  readonly path: string;
}

/** URLs are as many as model entries; this only bounds what edits of entries leave behind. */
const MOST_PLACES = 10_000;

export function createUpstream(): UndiciUpstream {
  const pools = new Map<string, Pool>();
  /** By URL and connect timeout: reading a URL costs more than finding it, and so does putting a name together of the two. */
  const places = new Map<string, Map<number, Place>>();

  const upstream = (request: UpstreamRequest) => {
    try {
      const { pool, path } = placeOf(request);
      return ask(pool, path, request);
    } catch (error) {
      return Promise.reject(toBroken(error));
    }
  };

  function placeOf({ url, timeouts: { connect } }: UpstreamRequest): Place {
    const known = places.get(url)?.get(connect);
    if (known !== undefined) return known;
    const { origin, pathname, search } = new URL(url);
    const place = { pool: poolFor(origin, connect), path: pathname + search };
    if (places.size >= MOST_PLACES) places.clear();
    places.set(url, (places.get(url) ?? new Map<number, Place>()).set(connect, place));
    return place;
  }

  function poolFor(origin: string, connectTimeout: number): Pool {
    const name = `${origin} ${connectTimeout}`;
    const known = pools.get(name);
    if (known !== undefined) return known;
    // HTTP/1.1 only: one broken stream of an HTTP/2 connection would take its neighbours along.
    const pool = new Pool(origin, { allowH2: false, connect: { timeout: connectTimeout }, keepAliveTimeout: 30_000 });
    pools.set(name, pool);
    return pool;
  }

  return Object.assign(upstream, {
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
      pools.clear();
      places.clear();
    },
  });
}
