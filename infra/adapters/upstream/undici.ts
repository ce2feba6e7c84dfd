// The upstream of a Node process: undici, one connection pool per origin.
import { Pool } from 'undici';
import type { Upstream, UpstreamRequest } from '#core/ports/serving.ts';
import { createTurn } from '../turn.ts';
import { ask, type Route, toBroken } from './answer.ts';
import { type PodIdentity, withSigning } from './signed.ts';

interface KnownRoute extends Route {
  readonly connect: number;
}

/** A bound on cached URLs: one per model entry, plus those of edited entries. */
const MAX_ROUTES = 10_000;

interface Deps {
  readonly fetch?: typeof globalThis.fetch;
  readonly now?: () => number;
  /** The role of the Pod, where it has one. */
  readonly pod?: PodIdentity;
}

export function createUpstream({ fetch = globalThis.fetch, now = Date.now, pod }: Deps = {}) {
  const turn = createTurn();
  const pools = new Map<string, Pool>();
  /** Routes by URL: a look-up costs less than parsing it. */
  const routes = new Map<string, KnownRoute>();

  const send: Upstream = (request) => {
    try {
      return ask(routeOf(request), request, turn);
    } catch (error) {
      return Promise.reject(toBroken(error));
    }
  };

  function routeOf({ url, timeouts: { connect } }: UpstreamRequest): KnownRoute {
    const known = routes.get(url);
    if (known?.connect === connect) return known;
    const { origin, pathname, search } = new URL(url);
    const route = { pool: poolFor(origin, connect), path: pathname + search, connect };
    if (routes.size >= MAX_ROUTES) routes.clear();
    routes.set(url, route);
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

  return Object.assign(withSigning(send, { fetch, now, pod }), {
    /** Closes every connection and breaks running calls. */
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
      pools.clear();
      routes.clear();
    },
  });
}
