// Databases that their owner wrote to harm whoever asks them: they speak PostgreSQL's protocol as far as it serves
// that.
import type { Socket } from 'node:net';
import { drip, listen, pour } from './server.ts';

const KIB = 1024;

export function message(type: string, ...parts: ReadonlyArray<Uint8Array>): Buffer {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const int16 = (value: number) => Buffer.from([(value >> 8) & 0xff, value & 0xff]);
const int32 = (value: number) => Buffer.from([24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff));
const text = (value: string) => Buffer.from(`${value}\0`);
/** A value of a row; null: none. */
const value = (content: string | null) =>
  content === null ? int32(-1) : Buffer.concat([int32(Buffer.byteLength(content)), Buffer.from(content)]);

const TEXT = 25;
const JSONB = 3802;
const [TEXTS, DATES] = [1009, 1185];
const columns = (...of: ReadonlyArray<readonly [name: string, type: number]>) =>
  message(
    'T',
    int16(of.length),
    ...of.flatMap(([name, type]) => [text(name), int32(0), int16(0), int32(type), int16(-1), int32(-1), int16(0)]),
  );
const row = (...of: ReadonlyArray<string | null>) => message('D', int16(of.length), ...of.map(value));
const ready = message('Z', Buffer.from('I'));
const authenticated = message('R', int32(0));
const parsed = Buffer.concat([message('1'), message('2')]);
const complete = Buffer.concat([message('C', text('SELECT 1')), ready]);
const error = (words: string) =>
  message('E', ...['SERROR', 'VERROR', 'CXX000', `M${words}`].map((field) => text(field)), Buffer.from([0]));

/** The most that the client library computes if it is not told otherwise; and what we let it. */
const [MAX_ROUNDS, FEW_ROUNDS] = [100_000, 20_000];
const requestScram = message('R', int32(10), text('SCRAM-SHA-256'), Buffer.from([0]));
/** Asks for so many rounds of hashing for a password (AuthenticationSASLContinue). */
const rounds = (nonce: string, count: number) =>
  message('R', int32(11), Buffer.from(`r=${nonce}more,s=c2FsdA==,i=${count}`));

function onNonce(socket: Socket, then: (nonce: string) => void): void {
  socket.once('data', (data) => then(/r=([^,\0]+)/.exec(data.toString('latin1'))?.[1] ?? ''));
}

/** Kinds of harm. Each is what the server does when it is asked; of a handshake, when it is dialled. */
export const KINDS = {
  'rows without end': (socket: Socket) => begin(socket, [['place', TEXT]], row('x'.repeat(60 * KIB))),
  'rows without columns, without end': (socket: Socket) => begin(socket, [], row()),
  'rows of nothing but nulls, without end': (socket: Socket) =>
    begin(
      socket,
      Array.from({ length: 60 }, (_, index) => [`c${index}`, TEXT] as const),
      row(...Array.from({ length: 60 }, () => null)),
    ),
  'one row without end': (socket: Socket) => {
    socket.write(Buffer.concat([parsed, columns(['place', TEXT]), Buffer.from('D'), int32(0x7fffff00), int16(1)]));
    socket.write(int32(0x7ffffe00));
    pour(socket, Buffer.alloc(64 * KIB, 'x'));
  },
  'a row of sixty thousand columns': (socket: Socket) => {
    socket.write(parsed);
    pour(socket, message('T', int16(-1), Buffer.alloc(64 * KIB)));
  },
  'rows whose count of columns is a lie': (socket: Socket) =>
    begin(socket, [['place', TEXT]], message('D', int16(30), int32(4))),
  'rows whose value is longer than they are': (socket: Socket) =>
    begin(socket, [['place', TEXT]], message('D', int16(1), int32(30_000))),
  'columns that are in the messages behind them': (socket: Socket) => {
    socket.write(parsed);
    pour(socket, repeated(message('T', int16(64)), 64 * KIB));
  },
  'copies whose columns are in the messages behind them': (socket: Socket) => {
    socket.write(parsed);
    pour(socket, repeated(message('G', Buffer.from([0]), int16(16_000)), 64 * KIB));
  },
  'log-ins after the log-in': (socket: Socket) => {
    socket.write(requestScram);
    onNonce(socket, (nonce) => pour(socket, repeated(rounds(nonce, MAX_ROUNDS), 64 * KIB)));
  },
  'JSON of nothing but lists': (socket: Socket) =>
    begin(socket, [['policy', JSONB]], row(`[${'[],'.repeat(2_000_000)}[]]`)),
  'JSON of many objects': (socket: Socket) => begin(socket, [['policy', JSONB]], row(`[${'{},'.repeat(50_000)}{}]`)),
  'notices without end': (socket: Socket) =>
    pour(socket, message('N', text('SNOTICE'), text(`M${'x'.repeat(1000)}`), Buffer.from([0]))),
  'errors without end': (socket: Socket) => pour(socket, error('x'.repeat(1000))),
  'an error of half a megabyte': (socket: Socket) => {
    socket.write(error('x'.repeat(512 * KIB)));
    socket.write(ready);
  },
  'one error without end': (socket: Socket) => {
    socket.write(Buffer.concat([Buffer.from('E'), int32(0x7fffff00), Buffer.from('M')]));
    pour(socket, Buffer.alloc(64 * KIB, 'x'));
  },
  'an error without its end': (socket: Socket) => {
    socket.write(message('E', text('SERROR')));
  },
  'a notice whose end is in the next message': (socket: Socket) => {
    socket.write(Buffer.concat([message('N', Buffer.from('Sx')), message('N', Buffer.from([0, 0]))]));
  },
  'replies to nothing, without end': (socket: Socket) => pour(socket, complete),
  'ends of commands, without end': small(message('C', text('A'))),
  'parts of rows, without end': small(message('s')),
  'copies of no columns, without end': small(message('G', Buffer.alloc(3))),
  'answers that it is ready, without end': small(ready),
  'columns without end': small(message('T', int16(0))),
  'notices of nothing, without end': small(message('N', Buffer.alloc(1))),
  'errors of nothing, without end': small(message('E', Buffer.alloc(1))),
  'parameters without a name, without end': small(message('S', Buffer.alloc(2))),
  'notifications without end': small(message('A', Buffer.alloc(6))),
  'a list of millions of dates': (socket: Socket) =>
    begin(socket, [['values', DATES]], row(`{${'2,'.repeat(2_000_000)}2}`)),
  'a list of millions of texts': (socket: Socket) =>
    begin(socket, [['values', TEXTS]], row(`{${'2,'.repeat(2_000_000)}2}`)),
  'copies that nobody asked for': (socket: Socket) =>
    pour(socket, Buffer.concat([message('G', Buffer.alloc(3)), message('d', Buffer.alloc(KIB))])),
  'a message of no length': (socket: Socket) => pour(socket, Buffer.concat([Buffer.from('D'), int32(0)])),
  noise: (socket: Socket) => pour(socket, noise(64 * KIB)),
  'a row a second, without end': (socket: Socket) => {
    socket.write(Buffer.concat([parsed, columns(['values', JSONB])]));
    drip(socket, row('[]'));
  },
  noReply: () => undefined,
} as const;

/** The same while the client still says who it is. */
export const HANDSHAKES = {
  'nothing but parameters without a name': (socket: Socket) =>
    pour(socket, repeated(message('S', Buffer.alloc(2)), 64 * KIB)),
  'keys without end': (socket: Socket) => pour(socket, repeated(message('K', Buffer.alloc(8)), 64 * KIB)),
  'parameters without end': (socket: Socket) => {
    socket.write(authenticated);
    pour(socket, message('S', text('TimeZone'), text('UTC')));
  },
  'notices before it is ready': KINDS['notices without end'],
  'noise before it is ready': KINDS.noise,
  'passwords without end': (socket: Socket) => pour(socket, message('R', int32(3))),
  'passwords with a salt, without end': (socket: Socket) => pour(socket, message('R', int32(5), int32(1))),
  'a password of a hundred million rounds': (socket: Socket) => {
    socket.write(requestScram);
    onNonce(socket, (nonce) => socket.write(rounds(nonce, 100_000_000)));
  },
  'a password of as many rounds as the client library computes': (socket: Socket) => {
    socket.write(requestScram);
    onNonce(socket, (nonce) => socket.write(rounds(nonce, MAX_ROUNDS)));
  },
  'rounds for one password, again and again': (socket: Socket) => {
    socket.write(requestScram);
    onNonce(socket, (nonce) => socket.write(repeated(rounds(nonce, FEW_ROUNDS), 60 * KIB)));
  },
  'passwords of some rounds, one after the other': (socket: Socket) => {
    const ask = (): void => {
      socket.write(requestScram);
      onNonce(socket, (nonce) => {
        socket.write(rounds(nonce, FEW_ROUNDS));
        socket.once('data', ask);
      });
    };
    ask();
  },
  'no handshake at all': () => undefined,
} as const;

export type Harm = keyof typeof KINDS | keyof typeof HANDSHAKES;

export const HARMS = [...Object.keys(KINDS), ...Object.keys(HANDSHAKES)] as ReadonlyArray<Harm>;

function begin(socket: Socket, of: ReadonlyArray<readonly [string, number]>, each: Buffer): void {
  socket.write(Buffer.concat([parsed, columns(...of)]));
  pour(socket, repeated(each, 64 * KIB));
}

/** A message of few bytes, without end, after a statement's beginning. */
function small(each: Buffer) {
  return (socket: Socket): void => {
    socket.write(parsed);
    pour(socket, repeated(each, 64 * KIB));
  };
}

/** The same message at least once, in at most so many bytes. */
function repeated(each: Buffer, bytes: number): Buffer {
  return Buffer.concat(Array.from({ length: Math.max(1, Math.floor(bytes / each.length)) }, () => each));
}

const noise = (length: number, seed = 1) => {
  let state = seed;
  return Buffer.from(
    Array.from({ length }, () => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return (state >> 16) & 0xff;
    }),
  );
};

/** `isPolite`: it says that it has the instance, and does its harm when it is asked for the claims. */
export function startHostilePostgres(harm: Harm | ClaimHarm, isPolite = false) {
  const shake = harm in HANDSHAKES ? HANDSHAKES[harm as keyof typeof HANDSHAKES] : undefined;
  const harms: Readonly<Record<string, (socket: Socket) => unknown>> = { ...KINDS, ...CLAIMS };
  return listen((socket) => {
    socket.once('data', () => {
      if (shake !== undefined) return shake(socket);
      socket.write(Buffer.concat([authenticated, ready]));
      let isHarming = false;
      socket.on('data', (asked) => {
        if (isHarming && harm !== 'claims without end') return;
        if (isPolite && asked.includes('"hasClaims"')) return socket.write(INSTANCE);
        isHarming = true;
        harms[harm]?.(socket);
      });
    });
  });
}

const [BOOL, FLOAT8, JSON_TYPE] = [16, 701, 114];

/** The answer about an instance that is open and has claims. */
const INSTANCE = Buffer.concat([
  parsed,
  columns(['now', FLOAT8], ['adopted', JSON_TYPE], ['place', JSON_TYPE], ['hasClaims', BOOL], ['isOpen', BOOL]),
  row('1790000000000', null, '{"namespace":"default","name":"main"}', 't', 't'),
  complete,
]);

const CLAIM_COLUMNS = columns(
  ...['scopeId', 'kind', 'alias', 'uid', 'namespace', 'name'].map((name) => [name, TEXT] as const),
  ...([
    ['policy', JSONB],
    ['anchor', FLOAT8],
    ['values', JSON_TYPE],
    ['bytes', FLOAT8],
  ] as const),
);
let made = 0;
const claim = (policy: string, values: string) => {
  made += 1;
  const id = String(made).padStart(12, '0');
  const scope = `00000000-0000-7000-8000-${id}`;
  return row(scope, 'key', `alias ${id}`, `uid ${id}`, 'default', `name-${id}`, policy, '1790000000000', values, '1');
};
const claims = (count: number, policy: string, values = '[]') =>
  Buffer.concat([
    ...[parsed, CLAIM_COLUMNS],
    ...Array.from({ length: count }, () => claim(policy, values)),
    ...[message('C', text(`SELECT ${count}`)), ready],
  ]);

/** Harm by claims. */
export const CLAIMS = {
  'claims without end': (socket: Socket) =>
    socket.write(claims(10_000, '{"kind":"key","models":[],"chargedScopeIds":[]}')),
  'claims of ten megabytes': (socket: Socket) => socket.write(claims(10_000, `{"models":["${'x'.repeat(1000)}"]}`)),
  'claims of no shape': (socket: Socket) => socket.write(claims(10, '7', '{"no":"list"}')),
} as const;

export type ClaimHarm = keyof typeof CLAIMS;

/** One that sends random messages, most of them well framed, by a seed. */
export const startRandomPostgres = (seed: number) =>
  listen((socket) => {
    let state = seed;
    const next = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return (state >> 8) % below;
    };
    const types = '123ACDEGHIKNRSTVWZcdnst';
    const random = (): Buffer => {
      const body = noise(next(40), next(1000));
      if (next(10) === 0) return body;
      if (next(4) === 0) return [authenticated, ready, complete, parsed, error('no'), row('1')][next(6)] ?? ready;
      return message(types[next(types.length)] ?? 'Z', body);
    };
    socket.once('data', () => {
      if (next(3) > 0) socket.write(Buffer.concat([authenticated, ready]));
      else socket.write(random());
      socket.on('data', () => socket.write(Buffer.concat(Array.from({ length: 1 + next(5) }, random))));
    });
  });
