// A gateway under test: the whole app, with a world that the test writes down.
import { createHmac } from 'node:crypto';
import * as z from 'zod';
import type { Snapshot, SnapshotEntry } from '#core/models/snapshot.ts';
import type { Mac } from '#core/ports/platform.ts';
import type { KeyRecord } from '#core/ports/policy.ts';
import type { Log } from '#core/ports/telemetry.ts';
import { createGateway } from '../../functions/gateway/app.ts';
import type { GatewayDependencies } from '../../functions/gateway/deps.ts';
import { toExchange } from '../../infra/runtime/fetch/http-exchange.ts';
import { policiesOf } from '../doubles/policies.ts';
import { checkLabels } from '../support/metric-labels.ts';
import { entry, KEY, keyRecord, snapshotOf } from './instance.ts';
import { createLedgerFake } from './ledger.ts';
import { createTime } from './time.ts';
import { completion, createUpstreamFake, type Script } from './upstream.ts';

export interface World {
  readonly snapshot?: Snapshot | undefined;
  readonly keys?: Readonly<Record<string, KeyRecord>>;
  readonly script?: Script;
  readonly deps?: Partial<GatewayDependencies>;
  /** Pieces that a client may leave unread before it counts as slow. */
  readonly room?: number | undefined;
}

export const mac: Mac = (secret, text) => createHmac('sha256', secret).update(text).digest('hex');

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
  const deps: GatewayDependencies = {
    snapshots: { current: () => snapshot },
    credentials: { read: (secret, name) => `value-of-${secret}-${name}\n` },
    policies: policiesOf((hash) => {
      finds.push(hash);
      return keys[hash.replace(/^hash of /, '')];
    }),
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
    mac,
    random: (count) => new Uint8Array(count),
    timer: clock.timer,
    log,
    metrics: {
      add: (name, labels, by = 1) => {
        checkLabels(name, labels);
        counted.push([name, labels, by]);
      },
      set: () => {},
      observe: (name, _, labels) => checkLabels(name, labels),
    },
    ...world.deps,
  };
  const handle = createGateway(deps);
  const request = (path: string, init?: RequestInit): Promise<Response> => {
    const { exchange, response } = toExchange(new Request(new URL(path, 'http://gateway.test'), init), world.room);
    void handle(exchange);
    return response;
  };
  const app = { handle, request };
  const chat = async (body: unknown, init: { key?: string | null; signal?: AbortSignal; path?: string } = {}) => {
    return request(init.path ?? '/chat/completions', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(init.key === null ? {} : { authorization: `Bearer ${init.key ?? KEY}` }),
      },
      body: typeof body === 'string' ? body : body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body),
      ...(init.signal === undefined ? {} : { signal: init.signal }),
    });
  };
  const get = (path: string, key: string | null = KEY) =>
    app.request(path, { headers: key === null ? {} : { authorization: `Bearer ${key}` } });
  return { app, deps, chat, get, ledger, fake, lines, counted, clock, keys, finds };
}

/** The provider, the key's budget and the client of a gateway with one model. */
export interface OneModel {
  readonly script?: Script | undefined;
  readonly limit?: string | undefined;
  readonly room?: number | undefined;
  /** Differences of the entry. */
  readonly entry?: Partial<SnapshotEntry>;
  readonly storeResponses?: boolean;
}

/** A gateway with one model and one key, which calls a provider once. */
export function stageOne(
  model: SnapshotEntry,
  { script, limit = '1', room, entry: differences, storeResponses = false }: OneModel,
) {
  const snapshot = { ...snapshotOf([{ ...model, ...differences }], { retries: 0 }), storeResponses };
  return stage({ snapshot, keys: { [KEY]: keyRecord({ limit }) }, room, ...(script === undefined ? {} : { script }) });
}

/** Every refusal has this envelope, and nothing else in it. */
export const Envelope = z.strictObject({
  error: z.strictObject({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string(),
    /** Of a spent budget. */
    resets_at: z.number().optional(),
  }),
});

/** How it is refused: the status, and the code in an envelope that has nothing else in it. */
export async function codeOf(response: Response): Promise<readonly [number, string]> {
  return [response.status, Envelope.parse(await response.json()).error.code];
}

/** At the end of a text whose reply was broken off there. */
export const BROKEN_OFF = '(broken off)';

/** The text of a reply, as far as it came. */
export async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true });
  } catch {
    return text + BROKEN_OFF;
  }
  return text;
}

/** The clients that a stream may have, and how much room each has. */
export const WAYS: ReadonlyArray<[string, number | undefined]> = [
  ['a connection with some room', undefined],
  ['a connection that is always full', 1],
  ['a connection with much room', 100],
];
