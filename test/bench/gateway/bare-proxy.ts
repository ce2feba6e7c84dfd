// The smallest gateway in Hono and undici: it forwards the body and returns the reply, without key, money or record.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { Pool } from 'undici';

const [upstream = ''] = process.argv.slice(2);
const pool = new Pool(upstream, { connections: 256 });
const app = new Hono();

app.post('/*', async (c) => {
  const body = new Uint8Array(await c.req.arrayBuffer());
  const reply = await pool.request({
    method: 'POST',
    path: `/v1${c.req.path}`,
    headers: { 'content-type': 'application/json', authorization: 'Bearer upstream' },
    body,
  });
  const chunks = reply.body[Symbol.asyncIterator]();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => void reply.body.destroy(),
  });
  const type = String(reply.headers['content-type']);
  return new Response(stream, { status: reply.statusCode, headers: { 'content-type': type } });
});

const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.send?.({ port }));
process.on('disconnect', () => {
  server.close();
  process.exit(0);
});
