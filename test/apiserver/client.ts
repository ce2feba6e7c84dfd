// Requests to the API server without kubectl.
import { Agent, request } from 'node:https';
import type { JsonObject } from '../../infra/apiserver/schema/json.ts';

export type Answer = { readonly code: number; readonly body: JsonObject & { readonly metadata: JsonObject } };

export type Client = {
  /** A text is sent as it is. */
  call(method: string, path: string, body?: object | string, contentType?: string): Promise<Answer>;
  /** The events of a watch so far; `ended` resolves when the server ends it. */
  watch(path: string): {
    events: ReadonlyArray<{ type: string; object: JsonObject & { metadata: JsonObject } }>;
    ended: Promise<void>;
    close(): void;
  };
  close(): void;
};

export function createClient({ url, ca, token }: { url: string; ca: string; token: string }): Client {
  const agent = new Agent({ ca, keepAlive: true });
  const headers = { authorization: `Bearer ${token}` };
  return {
    call: (method, path, body, contentType = 'application/json') =>
      new Promise((resolve, reject) => {
        const sent = request(
          `${url}${path}`,
          { method, agent, headers: { ...headers, 'content-type': contentType } },
          (reply) => {
            const chunks: Buffer[] = [];
            reply.on('data', (chunk) => chunks.push(chunk));
            reply.on('end', () =>
              resolve({ code: reply.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }),
            );
            reply.on('error', reject);
          },
        );
        sent.on('error', reject);
        sent.end(typeof body === 'object' ? JSON.stringify(body) : body);
      }),
    watch(path) {
      const events: Array<{ type: string; object: JsonObject & { metadata: JsonObject } }> = [];
      let rest = '';
      let finish = () => {};
      const ended = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const sent = request(`${url}${path}`, { headers, ca }, (reply) => {
        reply.on('data', (chunk) => {
          const lines = `${rest}${chunk}`.split('\n');
          rest = lines.pop() ?? '';
          for (const line of lines) events.push(JSON.parse(line));
        });
        reply.on('close', finish);
        reply.on('error', finish);
      });
      sent.on('error', finish);
      sent.end();
      return { events, ended, close: () => sent.destroy() };
    },
    close: () => agent.destroy(),
  };
}
