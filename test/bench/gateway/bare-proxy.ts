// The smallest gateway in Hono and undici: it forwards the body and returns the reply, without key, money or record.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { Pool } from 'undici';

const [upstream = ''] = process.argv.slice(2);
const pool = new Pool(upstream, { connections: 256 });
const app = new Hono();

app.post('/*', async (c) => {
  const abort = new AbortController();
  c.req.raw.signal.addEventListener('abort', () => abort.abort());
  const { statusCode, headers, body } = await pool.request({
    method: 'POST',
    path: `/v1${c.req.path}`,
    headers: { 'content-type': 'application/json', authorization: 'Bearer upstream' },
    body: await c.req.text(),
    signal: abort.signal,
  });
  const type = { 'content-type': String(headers['content-type']) };
  // A plain reply in a stream of the web would cost a third more.
  if (!type['content-type'].startsWith('text/event-stream'))
    return new Response(await body.text(), { status: statusCode, headers: type });
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      try {
        for await (const chunk of body) controller.enqueue(chunk);
        controller.close();
      } catch (error) {
        controller.error(error);
      }
    },
    cancel: () => abort.abort(),
  });
  return new Response(stream, { status: statusCode, headers: type });
});

const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.send?.({ port }));
process.on('disconnect', () => {
  server.close();
  process.exit(0);
});
