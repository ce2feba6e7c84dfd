// The upstream of a Node process: undici, with one connection pool for each origin.
import { Pool, type ProxyAgent } from 'undici';
import { createLru } from '#core/caches/lru.ts';
import type { Upstream, UpstreamRequest } from '#core/ports/upstream.ts';
import { createTurn } from '../process/event-loop-batch.ts';
import type { ProxyFor } from '../process/proxies.ts';
import { openProxy } from '../process/proxy-agent.ts';
import { type PodIdentity, withSigning } from './signing.ts';
import { dispatch, toUpstreamError, type UpstreamPool } from './upstream-response.ts';

/** A parsed address: the name of its pool, its path, and the timeout of its connections. */
interface ParsedAddress {
  readonly pool: string;
  readonly path: string;
  readonly connect: number;
}

/**
 * The maximum number of pools: twice as many as an instance has entries, because edited entries leave their old pools.
 */
const MAX_POOLS = 1_024;
/** The maximum number of parsed addresses: an entry has one for each API. */
const MAX_ROUTES = 4_096;

interface Dependencies {
  readonly fetch?: typeof globalThis.fetch;
  readonly now?: () => number;
  /** The proxy of an address; absent: all are called directly. */
  readonly proxyFor?: ProxyFor;
  /** The identity of the Pod; absent: none. */
  readonly pod?: PodIdentity;
  readonly maxPools?: number;
}

export function createUpstream({
  fetch = globalThis.fetch,
  now = Date.now,
  pod,
  proxyFor,
  maxPools = MAX_POOLS,
}: Dependencies = {}) {
  const turn = createTurn();
  /** Pools without new calls, until their last call has ended. */
  const closing = new Set<UpstreamPool>();
  const pools = createLru<UpstreamPool>(maxPools, { onEvict: (pool) => void retire(pool) });
  /** Parsed addresses by URL: a look-up is faster than parsing. No client chooses any part of an address. */
  const routes = createLru<ParsedAddress>(MAX_ROUTES);

  const send: Upstream = (request) => {
    try {
      const { pool, path, connect } = routeOf(request);
      const { query = '' } = request;
      return dispatch({ pool: poolFor(pool, connect), path: path + query }, request, turn);
    } catch (error) {
      return Promise.reject(toUpstreamError(error, false));
    }
  };

  function routeOf({ url, timeouts: { connect } }: UpstreamRequest): ParsedAddress {
    const known = routes.get(url);
    if (known?.connect === connect) return known;
    const { origin, pathname, search } = new URL(url);
    const route = { pool: `${origin} ${connect}`, path: pathname + search, connect };
    routes.set(url, route);
    return route;
  }

  function poolFor(name: string, connectTimeout: number): UpstreamPool {
    const known = pools.get(name);
    if (known !== undefined) return known;
    const [origin = ''] = name.split(' ');
    const proxy = proxyFor?.(new URL(origin));
    // Only HTTP/1.1: a broken HTTP/2 connection would break all its streams.
    const pool =
      proxy === undefined
        ? new Pool(origin, { allowH2: false, connect: { timeout: connectTimeout }, keepAliveTimeout: 30_000 })
        : poolThrough(openProxy(proxy, connectTimeout), origin);
    pools.set(name, pool);
    return pool;
  }

  async function retire(pool: UpstreamPool): Promise<void> {
    closing.add(pool);
    await pool.close().catch(() => undefined);
    closing.delete(pool);
  }

  return Object.assign(withSigning(send, { fetch, now, pod }), {
    /** Closes every connection and breaks running calls. */
    close: async () => {
      const open = [...pools.values(), ...closing];
      pools.clear();
      routes.clear();
      await Promise.all(open.map((pool) => pool.destroy()));
    },
  });
}

/** The connections to one origin through a proxy. */
function poolThrough(agent: ProxyAgent, origin: string): UpstreamPool {
  return {
    dispatch: (options, handler) => agent.dispatch({ ...options, origin }, handler),
    close: () => agent.close(),
    destroy: () => agent.destroy(),
  };
}
