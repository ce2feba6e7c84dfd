// What does a test need to send requests through a gateway? The whole app, with a world that the test writes down.
import * as z from 'zod';
import type { Log } from '#core/ports/clock.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import type { Snapshot } from '#core/snapshot.ts';
import { createGateway } from './app.ts';
import { createConnectionFake } from './connection.fixture.ts';
import type { GatewayDeps } from './deps.ts';
import { entry, KEY, keyRecord, snapshotOf } from './instance.fixture.ts';
import { createLedgerFake } from './ledger.fixture.ts';
import { createTime } from './time.fixture.ts';
import { completion, createUpstreamFake, type Script } from './upstream.fixture.ts';

export interface World {
  readonly snapshot?: Snapshot | undefined;
  readonly keys?: Readonly<Record<string, KeyRecord>>;
  readonly script?: Script;
  readonly deps?: Partial<GatewayDeps>;
  /** Replies are written to a connection with room for so many writes; absent: they are web streams. */
  readonly room?: number | undefined;
}

/** The app and everything around it that a test may look at. Timers run on the test's own clock. */
export function stage(world: World = {}) {
  const clock = createTime();
  const ledger = createLedgerFake(clock.now);
  const fake = createUpstreamFake(world.script ?? (() => ({ body: completion('hello') })));
  const lines: Array<{ level: string; message: string; fields: Readonly<Record<string, unknown>> }> = [];
  const counted: Array<readonly [string, Readonly<Record<string, string>> | undefined, number]> = [];
  const log: Log = {
    info: (message, fields = {}) => void lines.push({ level: 'info', message, fields }),
    warn: (message, fields = {}) => void lines.push({ level: 'warn', message, fields }),
    error: (message, fields = {}) => void lines.push({ level: 'error', message, fields }),
  };
  const keys = { ...(world.keys ?? { [KEY]: keyRecord() }) };
  const finds: string[] = [];
  const snapshot = 'snapshot' in world ? world.snapshot : snapshotOf([entry('gpt')]);
  let ids = 0;
  const deps: GatewayDeps = {
    snapshots: { current: () => snapshot },
    credentials: { read: (secret, name) => `value-of-${secret}-${name}\n` },
    policies: {
      find: async (hash) => {
        finds.push(hash);
        return keys[hash.replace(/^hash of /, '')];
      },
    },
    ledger,
    upstream: fake.upstream,
    clock: { now: clock.now },
    ids: {
      next: () => {
        ids += 1;
        return `request-${ids}`;
      },
    },
    hash: (text) => `hash of ${text}`,
    random: (count) => new Uint8Array(count),
    timer: clock.timer,
    log,
    metrics: {
      add: (name, labels, by = 1) => void counted.push([name, labels, by]),
      set: () => {},
      observe: () => {},
      render: () => 'metrics\n',
    },
    ...world.deps,
  };
  const app = createGateway(deps);
  const chat = async (body: unknown, init: { key?: string | null; signal?: AbortSignal; path?: string } = {}) => {
    const connection = world.room === undefined ? undefined : createConnectionFake(world.room);
    const signals = [init.signal, connection?.signal].filter((signal) => signal !== undefined);
    const request = {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(init.key === null ? {} : { authorization: `Bearer ${init.key ?? KEY}` }),
      },
      body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
    };
    const response = await app.request(init.path ?? '/chat/completions', request, connection);
    return connection === undefined ? response : connection.received(response);
  };
  const get = (path: string, key: string | null = KEY) =>
    app.request(path, { headers: key === null ? {} : { authorization: `Bearer ${key}` } });
  return { app, chat, get, ledger, fake, lines, counted, clock, keys, finds };
}

/** Every refusal has this envelope, and nothing else in it. */
export const Envelope = z.strictObject({
  error: z.strictObject({ message: z.string(), type: z.string(), param: z.string().nullable(), code: z.string() }),
});

/** How it is refused: the status, and the code in an envelope that has nothing else in it. */
export async function codeOf(response: Response): Promise<readonly [number, string]> {
  return [response.status, Envelope.parse(await response.json()).error.code];
}
