// Stores that their owner wrote to harm whoever asks them: as Redis over TCP, and as Upstash over HTTP.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { drip, type HostileServer, listen, pour } from './server.ts';

const KIB = 1024;
const text = (content: string) => Buffer.from(content);

/** Kinds of harm: what the server does in place of a reply. */
export const REDIS_HARMS = {
  'a text without end': (socket: Socket) => {
    socket.write('$900000000\r\n');
    pour(socket, Buffer.alloc(64 * KIB, 'x'));
  },
  'texts as large as they may be': (socket: Socket) =>
    pour(socket, Buffer.concat([text(`$${KIB * KIB - 100}\r\n`), Buffer.alloc(KIB * KIB - 100, '['), text('\r\n')])),
  'a list of thirty million': (socket: Socket) => socket.write('*30000000\r\n'),
  'lists in lists': (socket: Socket) => pour(socket, text('*64\r\n'.repeat(1000))),
  'a line without end': (socket: Socket) => pour(socket, Buffer.alloc(64 * KIB, '+')),
  'an error without end': (socket: Socket) => pour(socket, Buffer.alloc(64 * KIB, '-')),
  'replies that nobody asked for': (socket: Socket) => pour(socket, text('+OK\r\n'.repeat(1000))),
  'nulls that nobody asked for': (socket: Socket) => socket.write('$-1\r\n'.repeat(20)),
  'lists of nothing that nobody asked for': (socket: Socket) => pour(socket, text('*0\r\n'.repeat(1000))),
  'a push of nothing': (socket: Socket) => socket.write('>1\r\n_\r\n'),
  'ends of lines that are none': (socket: Socket) => socket.write('+a\rX*30000000\r\n'),
  noise: (socket: Socket) =>
    pour(socket, Buffer.from(Array.from({ length: 8 * KIB }, (_, index) => (index * index * 7 + index) & 0xff))),
  'a letter a second': (socket: Socket) => {
    socket.write('$1000\r\n');
    drip(socket, text('x'));
  },
  noReply: () => undefined,
} as const;

export type RedisHarm = keyof typeof REDIS_HARMS;

const INFO = 'redis_version:7.2.0\r\nredis_mode:standalone\r\nloading:0\r\ncluster_enabled:0\r\n';

/** `isPolite`: it does its harm only when it is asked for something, not while it is dialled. */
export function startHostileRedis(harm: RedisHarm, isPolite: boolean): Promise<HostileServer> {
  return listen((socket) => {
    let isHarming = false;
    socket.on('data', (data) => {
      if (isHarming) return;
      for (const command of data.toString('latin1').split(/(?=\*\d+\r\n\$)/)) {
        if (isHarming) return;
        if (isPolite && /\r\ninfo\r\n/i.test(command)) socket.write(`$${INFO.length}\r\n${INFO}\r\n`);
        else if (isPolite && /\r\n(auth|client|select|ping)\r\n/i.test(command)) socket.write('+OK\r\n');
        else {
          isHarming = true;
          REDIS_HARMS[harm](socket);
        }
      }
    });
  });
}

export const UPSTASH_HARMS = {
  'a body without end': (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"result":"');
    flood(response, Buffer.alloc(64 * KIB, 'x'));
  },
  'a body that unpacks to gigabytes': (response: ServerResponse) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    flood(response, gzipSync(Buffer.alloc(64 * KIB * KIB, 'x')));
  },
  'a letter at a time, without end': (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    if (response.socket !== null) pour(response.socket, text('1\r\nx\r\n'.repeat(10_000)));
  },
  'nothing yet, again and again': (response: ServerResponse) => {
    if (response.socket !== null) pour(response.socket, text('HTTP/1.1 103 E\r\n\r\n'.repeat(3000)));
  },
  'nothing but lists': (response: ServerResponse) => {
    response.end(JSON.stringify({ result: `{"accounts":[${'[],'.repeat(300_000)}[]]}` }));
  },
  'lists in lists': (response: ServerResponse) => {
    response.end(`{"result":${'['.repeat(300_000)}${']'.repeat(300_000)}}`);
  },
  'an error of lists': (response: ServerResponse) => {
    response.end(`{"error":${'['.repeat(300_000)}${']'.repeat(300_000)}}`);
  },
  'an error of a megabyte': (response: ServerResponse) => {
    response.end(JSON.stringify({ error: 'x'.repeat(1_000_000) }));
  },
  'a letter a second': (response: ServerResponse) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(' '), 1000);
    response.on('close', () => clearInterval(timer));
  },
  'another address': (response: ServerResponse) => {
    response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end();
  },
  'what is no JSON': (response: ServerResponse) => {
    response.end('<html>');
  },
  noReply: () => undefined,
} as const;

export type UpstashHarm = keyof typeof UPSTASH_HARMS;

function flood(response: ServerResponse, bytes: Uint8Array): void {
  const more = (): void => {
    while (!response.destroyed && response.write(bytes));
  };
  response.on('drain', more);
  more();
}

export async function startHostileUpstash(harm: UpstashHarm): Promise<{ readonly url: string; stop(): void }> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => UPSTASH_HARMS[harm](response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
