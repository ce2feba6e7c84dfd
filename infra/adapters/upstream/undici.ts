// How does a Node process speak to a provider? undici, one pool of connections per origin.
import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Pool } from 'undici';
import { type Upstream, UpstreamBroke, type UpstreamRequest } from '#core/ports/serving.ts';

export interface UndiciUpstream extends Upstream {
  /** Closes every connection; what is running is cut. */
  close(): Promise<void>;
}

/** Bodies are read as Node streams: turning one into a web stream ends the process when clients drop (ERR_INVALID_STATE). */
export function createUpstream(): UndiciUpstream {
  const pools = new Map<string, Pool>();

  const upstream = async (request: UpstreamRequest) => {
    try {
      const url = new URL(request.url);
      const { statusCode, headers, body } = await poolFor(url.origin, request.timeouts.connect).request({
        method: 'POST',
        path: url.pathname + url.search,
        headers: request.headers,
        body: request.body,
        headersTimeout: request.timeouts.firstByte,
        bodyTimeout: request.timeouts.idle,
        signal: request.signal,
      });
      const encoding = headers['content-encoding'];
      return { status: statusCode, headers: flat(headers), body: bytesOf(decoded(body, encoding)) };
    } catch (error) {
      throw broke(error);
    }
  };

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
    },
  });
}

/** Names come in lower case; a header that is sent twice is joined as RFC 9110 says. */
function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as const],
  );
  return Object.fromEntries(entries);
}

/** We ask for plain bytes; who compresses all the same is understood. */
function decoded(body: Readable, encoding: string | string[] | undefined): Readable {
  const decoder = decoderFor(String(encoding ?? '').toLowerCase());
  if (decoder === undefined) return body;
  // An error reaches whoever reads the decoder; the callback only keeps it from being thrown twice.
  return pipeline(body, decoder, () => {});
}

function decoderFor(encoding: string) {
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip();
  if (encoding === 'deflate') return createInflate();
  return encoding === 'br' ? createBrotliDecompress() : undefined;
}

async function* bytesOf(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    // Leaving this loop early destroys the body, which closes the connection: the provider stops.
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw broke(error);
  }
}

const TIMEOUTS: ReadonlySet<string> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
]);
const REFUSALS: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_INVALID_ARG',
  'ERR_INVALID_URL',
]);

function broke(error: unknown): UpstreamBroke {
  const code = codeOf(error);
  const how = TIMEOUTS.has(code) ? 'timeout' : REFUSALS.has(code) ? 'refused' : 'broken';
  return new UpstreamBroke(how, `the upstream failed: ${code || 'unknown'}`, { cause: error });
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Several addresses were tried: they rarely fail for different reasons.
  return error instanceof AggregateError ? codeOf(error.errors[0]) : error.name;
}
