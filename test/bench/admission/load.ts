// Requests per second of a server, and the time of each. Bare sockets, so that the server is measured and not the
// client.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';

export interface Target {
  readonly url: string;
  readonly path: string;
  readonly body: string;
}

export interface LoadMeasurement {
  readonly perSecond: number;
  /** Milliseconds of each answer, ascending. */
  readonly millis: readonly number[];
}

/**
 * Sends requests over `connections`, one at a time on each, until the time or the count is reached. Throws on an answer
 * that is not 200.
 */
export async function load(
  target: Target,
  { connections = 8, millis = Number.POSITIVE_INFINITY, requests = Number.POSITIVE_INFINITY },
): Promise<LoadMeasurement> {
  const took: number[] = [];
  const from = performance.now();
  const continues = (now: number) => now < from + millis && took.length < requests;
  await Promise.all(Array.from({ length: connections }, () => talk(target, continues, took)));
  return {
    perSecond: (took.length * 1000) / (performance.now() - from),
    millis: took.sort((one, other) => one - other),
  };
}

export const percentile = (ascending: readonly number[], share: number): number =>
  ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? Number.NaN;

function talk({ url, path, body }: Target, continues: (now: number) => boolean, took: number[]): Promise<void> {
  const { hostname, port } = new URL(url);
  const length = Buffer.byteLength(body);
  const request = Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`,
  );
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let missing = -1;
    let asked = 0;
    const ask = () => {
      missing = -1;
      asked = performance.now();
      socket.write(request);
    };
    socket.setNoDelay(true);
    socket.once('connect', ask);
    socket.once('error', reject);
    socket.on('data', (chunk) => {
      if (missing === -1) missing = lengthOf(chunk);
      missing -= chunk.length;
      if (missing > 0) return;
      const now = performance.now();
      took.push(now - asked);
      if (continues(now)) return ask();
      socket.destroy();
      resolve();
    });
    const lengthOf = (chunk: Buffer): number => {
      const head = chunk.indexOf('\r\n\r\n');
      const text = chunk.toString('latin1', 0, head);
      const [, size] = /content-length: ([0-9]+)/i.exec(text) ?? [];
      if (text.startsWith('HTTP/1.1 200') && size !== undefined) return head + 4 + Number(size);
      socket.destroy();
      reject(new Error(`unexpected answer of ${path}: ${chunk.toString()}`));
      return Number.POSITIVE_INFINITY;
    };
  });
}

export interface Server {
  readonly url: string;
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

/** `server.ts` in its own process. */
export async function start(what: 'echo' | 'admission', address?: string): Promise<Server> {
  const child = fork(join(import.meta.dirname, 'server.ts'), [what, ...(address === undefined ? [] : [address])]);
  const ended = once(child, 'exit');
  const [url] = (await Promise.race([
    once(child, 'message'),
    ended.then(() => Promise.reject(new Error(`${what} did not start`))),
  ])) as [string];
  const stop = async () => {
    child.disconnect();
    await ended;
  };
  return { url, child, stop };
}
