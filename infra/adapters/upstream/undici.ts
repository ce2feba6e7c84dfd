// The upstream of a Node process: undici, one connection pool per origin.
import { Pool } from 'undici';
import type { Upstream, UpstreamRequest } from '#core/ports/serving.ts';
import { ask } from './answer.ts';
import { toBroken } from './broken.ts';

export interface UndiciUpstream extends Upstream {
  /** Closes every connection and breaks running calls. */
  close(): Promise<void>;
}

/** The pool and path of a URL. */
interface Route {
  readonly pool: Pool;
  readonly path: string;
}

/** A bound on cached URLs: one per model entry, plus those of edited entries. */
const MAX_ROUTES = 10_000;

export function createUpstream(): UndiciUpstream {
  const pools = new Map<string, Pool>();
  /** Routes by URL and connect timeout: two look-ups cost less than parsing a URL or joining a key. */
  const routes = new Map<string, Map<number, Route>>();

  const upstream = (request: UpstreamRequest) => {
    try {
      const { pool, path } = routeOf(request);
      return ask(pool, path, request);
    } catch (error) {
      return Promise.reject(toBroken(error));
    }
  };

  function routeOf({ url, timeouts: { connect } }: UpstreamRequest): Route {
    const known = routes.get(url)?.get(connect);
    if (known !== undefined) return known;
    const { origin, pathname, search } = new URL(url);
    const route = { pool: poolFor(origin, connect), path: pathname + search };
    if (routes.size >= MAX_ROUTES) routes.clear();
    routes.set(url, (routes.get(url) ?? new Map<number, Route>()).set(connect, route));
    return route;
  }

  function poolFor(origin: string, connectTimeout: number): Pool {
    const name = `${origin} ${connectTimeout}`;
    const known = pools.get(name);
    if (known !== undefined) return known;
    // HTTP/1.1 only: a broken HTTP/2 connection would break every stream on it.
    const pool = new Pool(origin, { allowH2: false, connect: { timeout: connectTimeout }, keepAliveTimeout: 30_000 });
    pools.set(name, pool);
    return pool;
  }

  return Object.assign(upstream, {
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
      pools.clear();
      routes.clear();
    },
  });
}
