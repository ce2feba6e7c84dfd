// What does a test need to send requests through a gateway? The whole app, with a world that the test writes down.
import { parseMoney } from '#core/money.ts';
import type { Log } from '#core/ports/clock.ts';
import type { HoldRequest, Ledger, Settlement } from '#core/ports/ledger.ts';
import type { KeyPolicy, KeyRecord, ScopePolicy } from '#core/ports/policy.ts';
import { type Upstream, UpstreamBroke, type UpstreamRequest } from '#core/ports/serving.ts';
import type { Snapshot, SnapshotEntry } from '#core/snapshot.ts';
import { windowAt } from '#core/window.ts';
import { createGateway } from './app.ts';
import type { GatewayDeps } from './deps.ts';

export const KEY = 'sk-test-key';
export const NOW = Date.UTC(2026, 10, 21, 12);

export interface Settled extends Settlement {
  readonly hold: string;
}

/** A ledger of one process: limits, holds and windows as the real one keeps them, nothing durable. */
export interface LedgerFake extends Ledger {
  readonly asked: HoldRequest[];
  readonly settled: Settled[];
  readonly released: string[];
  readonly progressed: bigint[];
  /** What the scope has spent so far. */
  spent(scopeId: string): bigint;
  /** Spends from outside. */
  spendNow(scopeId: string, dollars: string): void;
  fail(what: 'hold' | 'settle' | undefined): void;
  held(): number;
}

export function createLedgerFake(now: () => number): LedgerFake {
  const open = new Map<string, { amount: bigint; scopes: ReadonlyArray<ScopePolicy> }>();
  const sums = new Map<string, bigint>();
  const asked: HoldRequest[] = [];
  const settled: Settled[] = [];
  const released: string[] = [];
  const progressed: bigint[] = [];
  let failing: 'hold' | 'settle' | undefined;
  let next = 0;

  const spent = (scopeId: string) => sums.get(scopeId) ?? 0n;
  const windowOf = ({ anchor, budget }: ScopePolicy) =>
    windowAt({ anchor, duration: budget?.duration ?? '30d', alignment: budget?.alignment ?? 'Rolling' }, now());
  const heldBy = (scopeId: string) =>
    [...open.values()]
      .filter(({ scopes }) => scopes.some((scope) => scope.scopeId === scopeId))
      .reduce((sum, { amount }) => sum + amount, 0n);

  return {
    asked,
    settled,
    released,
    progressed,
    spent,
    held: () => open.size,
    spendNow: (scopeId, dollars) => void sums.set(scopeId, spent(scopeId) + (parseMoney(dollars) ?? 0n)),
    fail: (what) => {
      failing = what;
    },
    hold: async (request) => {
      asked.push(request);
      if (failing === 'hold') return { ok: false, failure: { reason: 'unavailable', why: 'the store is away' } };
      let amount = request.amount;
      for (const scope of request.scopes) {
        if (scope.budget === undefined) continue;
        const limit = BigInt(scope.budget.limit);
        const left = limit - spent(scope.scopeId);
        if (left <= 0n || left < request.least) {
          const resetAt = windowOf(scope).end;
          return { ok: false, failure: { reason: 'exceeded', scope, spent: spent(scope.scopeId), limit, resetAt } };
        }
        if (left < amount) amount = left;
        if (request.amount > 0n && left - heldBy(scope.scopeId) < amount) {
          return { ok: false, failure: { reason: 'busy', scope } };
        }
      }
      next += 1;
      const id = `hold-${next}`;
      open.set(id, { amount, scopes: request.scopes });
      return { ok: true, value: { id, amount, charges: [] } };
    },
    progress: (_hold, known) => void progressed.push(known),
    settle: async (hold, settlement) => {
      if (failing === 'settle') throw new Error('the disk is full');
      const held = open.get(hold.id);
      if (held === undefined) return;
      open.delete(hold.id);
      settled.push({ ...settlement, hold: hold.id });
      for (const { scopeId } of held.scopes) sums.set(scopeId, spent(scopeId) + settlement.cost);
    },
    release: async (hold) => {
      if (open.delete(hold.id)) released.push(hold.id);
    },
    spend: async (scopes) => {
      if (failing === 'hold') return { ok: false, failure: { reason: 'unavailable', why: 'the store is away' } };
      return {
        ok: true,
        value: scopes.map((scope) =>
          scope.budget === undefined
            ? undefined
            : { scopeId: scope.scopeId, window: windowOf(scope), spent: spent(scope.scopeId) },
        ),
      };
    },
    flush: async () => {},
    close: async () => {},
  };
}

export function entry(modelName: string, differences: Partial<SnapshotEntry> = {}): SnapshotEntry {
  return {
    modelName,
    identifier: modelName,
    provider: 'openai',
    model: `real-${modelName}`,
    credentials: { apiKey: { secret: `${modelName}-secret`, entry: 'key' } },
    requiresAuth: true,
    // A dollar for a million is a thousand nano-dollars for one.
    price: { input: '1', output: '2' },
    weight: 1,
    priority: 0,
    ...differences,
  };
}

export function snapshotOf(models: ReadonlyArray<SnapshotEntry>, routing: Partial<Snapshot['routing']> = {}): Snapshot {
  return {
    version: 1,
    instance: { uid: 'uid', namespace: 'default', name: 'sample' },
    routing: {
      strategy: 'SimpleShuffle',
      retries: 2,
      timeouts: { connect: 100, firstByte: 1000, idle: 1000, total: 5000 },
      cooldown: { failures: 3, within: 30_000, duration: 30_000 },
      ...routing,
    },
    models: [...models],
  };
}

/** A key with a budget of one dollar, unless told otherwise. */
export function keyRecord(
  key: Partial<KeyPolicy> & { readonly limit?: string | undefined } = {},
  others: ReadonlyArray<ScopePolicy> = [],
): KeyRecord {
  const { limit = '1', ...differences } = key;
  const amount = parseMoney(limit);
  const policy: KeyPolicy = {
    scopeId: 'key-scope',
    kind: 'key',
    name: 'billing',
    blocked: false,
    models: [],
    ...(amount === undefined ? {} : { budget: { limit: String(amount), duration: '30d', alignment: 'Rolling' } }),
    anchor: NOW - 86_400_000,
    object: { namespace: 'default', name: 'billing' },
    charges: others.map(({ scopeId }) => scopeId),
    ...differences,
  };
  return { key: policy, scopes: [policy, ...others] };
}

export function scope(kind: 'user' | 'team', differences: Partial<ScopePolicy> = {}): ScopePolicy {
  return { scopeId: `${kind}-scope`, kind, name: `a ${kind}`, blocked: false, models: [], anchor: NOW, ...differences };
}

export interface WireReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: AsyncIterable<Uint8Array> | Iterable<Uint8Array | string> | string;
}

export type Script = (request: UpstreamRequest, call: number) => WireReply | Promise<WireReply>;

/** An upstream that answers by script and keeps what it was sent. An aborted request breaks its body, as a socket would. */
export function createUpstreamFake(script: Script) {
  const requests: UpstreamRequest[] = [];
  let returned = 0;
  const upstream: Upstream = async (request) => {
    requests.push(request);
    const reply = await Promise.race([script(request, requests.length), aborted(request.signal)]);
    const { status = 200, headers = { 'content-type': 'application/json' }, body = '' } = reply;
    return { status, headers, body: read(typeof body === 'string' ? [body] : body, request.signal) };
  };

  async function* read(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array | string>, signal: AbortSignal) {
    const iterator = toAsync(body);
    try {
      while (true) {
        const next = await Promise.race([iterator.next(), aborted(signal)]);
        if (next.done) return;
        yield typeof next.value === 'string' ? new TextEncoder().encode(next.value) : next.value;
      }
    } finally {
      returned += 1;
    }
  }

  return {
    upstream,
    requests,
    /** Bodies that were read to their end or let go. */
    ended: () => returned,
    sent: (index = 0): Record<string, unknown> => JSON.parse(new TextDecoder().decode(requests[index]?.body)),
  };
}

async function* toAsync<T>(items: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T> {
  yield* items;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => reject(new UpstreamBroke('broken', 'aborted'));
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

export interface World {
  readonly snapshot?: Snapshot | undefined;
  readonly keys?: Readonly<Record<string, KeyRecord>>;
  readonly script?: Script;
  readonly deps?: Partial<GatewayDeps>;
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
  const chat = (body: unknown, init: { key?: string | null; signal?: AbortSignal; path?: string } = {}) =>
    app.request(init.path ?? '/chat/completions', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(init.key === null ? {} : { authorization: `Bearer ${init.key ?? KEY}` }),
      },
      body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      ...(init.signal === undefined ? {} : { signal: init.signal }),
    });
  const get = (path: string, key: string | null = KEY) =>
    app.request(path, { headers: key === null ? {} : { authorization: `Bearer ${key}` } });
  return { app, chat, get, ledger, fake, lines, counted, clock, keys, finds };
}

/** Time that passes when it is told to. */
export function createTime(start = NOW) {
  let now = start;
  const timers = new Set<{ at: number; callback: () => void }>();
  return {
    now: () => now,
    timer: (millis: number, callback: () => void) => {
      const timer = { at: now + millis, callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    waiting: () => timers.size,
    /** Lets so long pass, and everything that was waiting for it happen. */
    pass: async (millis: number) => {
      now += millis;
      for (const timer of [...timers].filter(({ at }) => at <= now)) {
        timers.delete(timer);
        timer.callback();
      }
      await settleDown();
    },
  };
}

/** Lets every promise that is ready go on. */
export async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

export const MESSAGES = [{ role: 'user', content: 'Say hello.' }];

export function completion(content: string, usage: unknown = { prompt_tokens: 10, completion_tokens: 5 }): string {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
  return JSON.stringify({ id: 'c-1', object: 'chat.completion', created: 1, model: 'real', choices, usage });
}

export function chunk(delta: object, more: object = {}, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'c-1', object: 'chat.completion.chunk', created: 1, model: 'real', choices, ...more })}\n\n`;
}

export const USAGE_CHUNK = `data: ${JSON.stringify({
  id: 'c-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'real',
  choices: [],
  usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 },
})}\n\n`;

export const DONE = 'data: [DONE]\n\n';

export const SSE = { 'content-type': 'text/event-stream; charset=utf-8' };

/** The words as a stream of chunks, ended as OpenAI ends it. */
export function streamed(words: ReadonlyArray<string>): string[] {
  const deltas = words.map((content) => chunk({ content }));
  return [chunk({ role: 'assistant', content: '' }), ...deltas, chunk({}, {}, 'stop'), USAGE_CHUNK, DONE];
}
