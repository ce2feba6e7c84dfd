// A load of one repeated request over several kept-alive connections, each without pauses.
import { connect } from 'node:net';
import { createSplitter } from './messages.ts';
import type { Kind } from './replies.ts';

export interface Order {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  readonly key: string;
  readonly kind: Kind;
}

export interface Load {
  readonly requests: number;
  /** The number of answers other than 200, by status. */
  readonly refused: Readonly<Record<string, number>>;
  readonly seconds: number;
  /** The median time of an answer in milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

process.on('message', (order: Order) => {
  run(order).then((load) => process.send?.(load));
});
process.on('disconnect', () => process.exit(0));

async function run(order: Order): Promise<Load> {
  const request = toRequest(order);
  const taken: number[] = [];
  const refused: Record<string, number> = {};
  const began = performance.now();
  const end = began + order.seconds * 1000;
  const client = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(order.port, '127.0.0.1').setNoDelay(true);
      let sent = 0;
      const send = () => {
        sent = performance.now();
        socket.write(request);
      };
      const split = createSplitter((head) => {
        const now = performance.now();
        const status = head.slice(9, 12);
        if (status === '200') taken.push(now - sent);
        else refused[status] = (refused[status] ?? 0) + 1;
        if (now < end) return send();
        socket.destroy();
        resolve();
      });
      socket.on('connect', send).on('data', split).on('error', reject);
      socket.on('close', () => reject(new Error('the server closed a connection')));
    });
  await Promise.all(Array.from({ length: order.connections }, client));
  const seconds = (performance.now() - began) / 1000;
  taken.sort((a, b) => a - b);
  const at = (share: number) => taken[Math.floor(taken.length * share)] ?? Number.NaN;
  return { requests: taken.length, refused, seconds, p50: at(0.5), p99: at(0.99) };
}

function toRequest({ key, kind }: Order): string {
  const body = JSON.stringify({
    model: 'sample-small',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Name three things that a gateway in front of a language model has to get right.' },
    ],
    max_completion_tokens: 256,
    ...(kind === 'plain' ? {} : { stream: true }),
    ...(kind === 'paced' ? { user: 'paced' } : {}),
  });
  const head = [
    'POST /chat/completions HTTP/1.1',
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}
