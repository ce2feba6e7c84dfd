// A load of repeated requests over several kept-alive connections, each without pauses.
import { connect } from 'node:net';
import { isSmall, keyValueOf } from '../large/keys.ts';
import { createSplitter } from './messages.ts';
import { type Kind, requestOf } from './replies.ts';

export interface Order {
  /** The servers, which share the connections. */
  readonly ports: ReadonlyArray<number>;
  readonly connections: number;
  /** The kinds of requests that each connection sends in turn; every other connection starts with the second. */
  readonly kinds: ReadonlyArray<Kind>;
  readonly key: string;
  /** Each request has a random one of this many key values (`large/keys.ts`) in place of `key`. */
  readonly keys?: number;
  /** The load ends after so many seconds, or after so many requests. */
  readonly seconds: number;
  readonly requests?: number;
  /** Connections start one after the other within so many milliseconds. */
  readonly spread?: number;
}

export interface Load {
  readonly answers: Readonly<Partial<Record<Kind, number>>>;
  /** The number of answers other than 200, by status. */
  readonly refused: Readonly<Record<string, number>>;
  readonly seconds: number;
  /** Microseconds until the last byte of each answer, in ascending order. */
  readonly whole: ReadonlyArray<number>;
  /** Microseconds until the first event of each stream, in ascending order. */
  readonly first: ReadonlyArray<number>;
}

process.on('message', (order: Order) => {
  run(order).then((load) => process.send?.(load));
});
process.on('disconnect', () => process.exit(0));

async function run(order: Order): Promise<Load> {
  const requests = order.kinds.map((kind) => ({ kind, bytes: toRequest(order.key, kind) }));
  const [whole, first]: [number[], number[]] = [[], []];
  const answers: Partial<Record<Kind, number>> = {};
  const refused: Record<string, number> = {};
  const began = performance.now();
  const end = began + order.seconds * 1000;
  let left = order.requests ?? Number.POSITIVE_INFINITY;
  const isOver = (now: number) => left <= 0 || now >= end;

  const client = (place: number) =>
    new Promise<void>((resolve, reject) => {
      const port = order.ports[place % order.ports.length] ?? 0;
      const socket = connect(port, '127.0.0.1').setNoDelay(true);
      let turn = place;
      let [sent, firstAt] = [0, 0];
      const requestNow = () => requests[turn % requests.length] ?? { kind: 'plain' as const, bytes: Buffer.alloc(0) };
      const send = () => {
        left -= 1;
        firstAt = 0;
        sent = performance.now();
        const { kind, bytes } = requestNow();
        socket.write(order.keys === undefined ? bytes : toRequest(randomValue(order.keys), kind));
      };
      const split = createSplitter((head) => {
        const now = performance.now();
        const status = head.slice(9, 12);
        const { kind } = requestNow();
        if (status === '200') {
          whole.push(Math.round((now - sent) * 1000));
          if (firstAt > 0) first.push(Math.round((firstAt - sent) * 1000));
          answers[kind] = (answers[kind] ?? 0) + 1;
        } else refused[status] = (refused[status] ?? 0) + 1;
        turn += 1;
        if (!isOver(now)) return send();
        socket.destroy();
        resolve();
      });
      const onData = (chunk: Buffer) => {
        if (firstAt === 0 && chunk.includes('data: {')) firstAt = performance.now();
        split(chunk);
      };
      socket.on('data', onData).on('error', reject);
      socket.on('connect', () => setTimeout(send, ((order.spread ?? 0) * place) / order.connections));
      socket.on('close', () => reject(new Error('the server closed a connection')));
    });

  await Promise.all(Array.from({ length: order.connections }, (_, place) => client(place)));
  const seconds = (performance.now() - began) / 1000;
  return { answers, refused, seconds, whole: sorted(whole), first: sorted(first) };
}

const sorted = (values: number[]): number[] => values.sort((a, b) => a - b);

/** A key value with a large budget. */
function randomValue(keys: number): string {
  const key = Math.floor(Math.random() * keys);
  return keyValueOf(isSmall(key) ? key + 1 : key);
}

function toRequest(key: string, kind: Kind): Buffer {
  const { path, body } = requestOf(kind);
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}
