// The counter store in Redis, over TCP or HTTPS: one script, whose argument and reply are JSON (account.lua).
import { createHash } from 'node:crypto';
import { LayoutMismatch } from '#core/ports/backends.ts';
import type { AuditReply, CounterStore, FiguresReply, FreezeReply, StaleStore } from '#core/ports/counter-store.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import { AnswerRefused, jsonBytes, type WorkMemory } from '../backends/reply-memory.ts';
import script from './account.json' with { type: 'json' };
import { fromCall, fromReply, fromSum, fromText, nameOf, toNano } from './account-text.ts';

/**
 * Runs the script atomically on the server of `key`. Returns its reply. Throws if the server is unreachable or its
 * reply is lost.
 */
export type Evaluate = (script: string, key: string, args: ReadonlyArray<string>) => Promise<unknown>;

/**
 * Sends a script's text only if the server does not know its hash, for example after a restart: nothing was done then.
 */
export function createEvaluate(
  call: (command: 'eval' | 'evalsha', script: string, key: string, args: ReadonlyArray<string>) => Promise<unknown>,
): Evaluate {
  const hashes = new Map<string, string>();
  return async (script, key, args) => {
    const hash = hashes.get(script) ?? createHash('sha1').update(script).digest('hex');
    hashes.set(script, hash);
    try {
      return await call('evalsha', hash, key, args);
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('NOSCRIPT'))) throw error;
      return call('eval', script, key, args);
    }
  };
}

/** Throws the error again: as LayoutMismatch if the script refused the layout. */
function toLayoutMismatch(error: unknown): never {
  const [, message] = (error instanceof Error && /\bLAYOUT (.*)/s.exec(error.message)) || [];
  throw message === undefined ? error : new LayoutMismatch(message, { cause: error });
}

/** The only key that calls declare. All keys of an instance begin alike, so they share its slot. */
export const metaKey = (instanceUid: string): string => `{${instanceUid}}:meta`;

export interface RedisCounterStoreDependencies {
  readonly evaluate: Evaluate;
  readonly instanceUid: string;
  /** Absent: each call has a connection of its own. */
  readonly reconnect?: (() => void) | undefined;
  /** The memory of the work that uses the store: the last reply counts in it. Absent: the process uses the store. */
  readonly workMemory?: WorkMemory | undefined;
}

/**
 * The maximum bytes of the values in a reply, for a process that uses the stores of many owners: a tenant's store may
 * answer with so many small values that reading them takes seconds. The largest page of counters or accounts has less
 * than a quarter of it.
 */
const MAX_VALUES = 2 * 1024 * 1024;
const TOO_MANY_VALUES = 'answers with too many values: check that the Secret names the right server';

/**
 * Every method is one evaluation of the script. Throws if the server is unreachable, its reply is lost, or another
 * version has written its layout.
 */
export function createRedisCounterStore({
  evaluate,
  instanceUid,
  reconnect = () => undefined,
  workMemory,
}: RedisCounterStoreDependencies): CounterStore {
  if (!/^[^{}]+$/.test(instanceUid))
    throw new Error(`instance uid "${instanceUid}": must not be empty or contain braces`);
  const replyHolder = {};
  const ask = async (operation: string, argument: object): Promise<string> => {
    const args = [operation, JSON.stringify(argument)];
    const reply = await evaluate(script, metaKey(instanceUid), args).catch(toLayoutMismatch);
    if (typeof reply !== 'string') throw new Error('unexpected reply of the store: must be a text');
    if (workMemory === undefined) return reply;
    const values = jsonBytes(reply);
    if (values > MAX_VALUES) throw new AnswerRefused(TOO_MANY_VALUES);
    workMemory.take(replyHolder, 2 * reply.length + values);
    return reply;
  };
  const run = async <T>(operation: string, argument: object): Promise<T> => fromText<T>(await ask(operation, argument));
  return {
    call: async (call) => fromReply(await ask('call', fromCall(call))),
    async load(epoch, sums) {
      if (sums.length > 0) await run('load', { epoch, sums: sums.map(fromSum) });
    },
    async read(counters) {
      if (counters.length === 0) return [];
      const states = await run<ReadonlyArray<false | [string, string]>>('read', { counters: counters.map(nameOf) });
      return states.map((state) => (state ? { spent: toNano(state[0]), escrowOfAll: toNano(state[1]) } : undefined));
    },
    freeze: (epoch, account, isOwn) => run<FreezeReply>('freeze', { epoch, account, isOwn }),
    figures: (epoch, account, cursor) => run<FiguresReply>('figures', { epoch, account, cursor }),
    async forget(epoch, account, isCharged, counters) {
      await run('forget', { epoch, account, isCharged, counters: counters.map(nameOf) });
    },
    async accounts(isEnded, max) {
      type Reply = { accounts: Awaited<ReturnType<CounterStore['accounts']>> };
      return (await run<Reply>('accounts', { isEnded, max })).accounts;
    },
    loaded: (from, max) => run<{ counters: ReadonlyArray<ScopeWindow>; total: number }>('loaded', { from, max }),
    audit: (epoch, sums, rows, { storeCallsBefore, deadline, acceptsChangedAccounts }) =>
      run<AuditReply | StaleStore>('audit', {
        epoch,
        sums: sums.map((sum) => [...fromSum(sum), ...(sum.minSum === undefined ? [] : [`${sum.minSum}`])]),
        rows: Object.fromEntries(rows),
        storeCallsBefore,
        deadline: Math.floor(deadline),
        acceptsChangedAccounts,
      }),
    async begin(epoch, isNew) {
      return (await run<{ epoch: number }>('begin', { epoch, isNew })).epoch;
    },
    reconnect,
    async clear() {
      await run('clear', {});
    },
  };
}
