// Clients under chaos: the end of each request, and whether its last byte arrived.
import { request as send } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import type { Harness, Key } from './harness.ts';

export interface ClientReply {
  readonly key: Key;
  /** The status; undefined without an answer. */
  readonly status: number | undefined;
  readonly code: string | undefined;
  /** The reply's name, if its end arrived. */
  readonly completed: string | undefined;
  /** Whether money may have been reserved for it. */
  readonly isSuspect: boolean;
  /** Milliseconds until the status. */
  readonly took: number;
}

/** Runs `count` clients that send requests until they are stopped; returns all outcomes. */
export function startLoad(
  { gateways, keys }: Harness,
  clients: number,
): { end(): Promise<ReadonlyArray<ClientReply>> } {
  const seen: ClientReply[] = [];
  let isOver = false;
  const live = async (client: number): Promise<void> => {
    for (let times = client; !isOver; times += 1) {
      const gateway = gateways[times % gateways.length];
      const key = keys[times % 5 === 0 ? keys.length - 1 : 0];
      if (gateway === undefined || key === undefined) return;
      const one = await ask(gateway.url, key, times % 3 !== 0);
      seen.push(one);
      if (one.status !== 200) await pause(40);
    }
  };
  const all = Promise.all(Array.from({ length: clients }, (_, client) => live(client)));
  return {
    async end() {
      isOver = true;
      await all;
      return seen;
    },
  };
}

/** Waits until every gateway serves a request of each key again, without help. Returns all requests until then. */
export async function recovered({ gateways }: Harness, keys: ReadonlyArray<Key>): Promise<ClientReply[]> {
  const seen: ClientReply[] = [];
  for (const { url } of gateways) {
    for (const key of keys) {
      const repeatRequest = async (): Promise<ClientReply> => {
        const one = await ask(url, key, true);
        seen.push(one);
        return one;
      };
      await eventually(repeatRequest, ({ completed }) => completed !== undefined, 20_000);
    }
  }
  return seen;
}

export function ask(url: string, key: Key, isStream: boolean, content = 'Say words.'): Promise<ClientReply> {
  const began = performance.now();
  const body = JSON.stringify({
    model: 'fault',
    messages: [{ role: 'user', content }],
    max_tokens: 40,
    ...(isStream ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
  const nothing = { key, code: undefined, completed: undefined };
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key.value}`, 'content-type': 'application/json' };
    const request = send(`${url}/chat/completions`, { method: 'POST', headers, agent: false, timeout: 30_000 });
    // The gateway may have been killed between the reservation and the first byte, unless the connection was refused.
    const fail = (error: NodeJS.ErrnoException): void => {
      const isSuspect = error.code !== 'ECONNREFUSED';
      resolve({ ...nothing, status: undefined, isSuspect, took: performance.now() - began });
    };
    request.on('error', fail);
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('response', (response) => {
      const took = performance.now() - began;
      const { statusCode: status } = response;
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('close', () => {
        if (status !== 200) return resolve({ ...nothing, status, code: codeIn(text), isSuspect: false, took });
        const isWhole = response.complete && (!isStream || text.includes('data: [DONE]'));
        const completed = isWhole ? /"id":"(reply-\d+)"/.exec(text)?.[1] : undefined;
        resolve({ key, status, code: undefined, completed, isSuspect: !isWhole, took });
      });
      response.on('error', () => undefined);
    });
    request.end(body);
  });
}

const codeIn = (text: string): string | undefined => /"code":"([^"]+)"/.exec(text)?.[1];
