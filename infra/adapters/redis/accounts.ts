// The accounts in Redis, over TCP or HTTPS: one script, whose argument and reply are JSON (account.lua).
import type { Accounts } from '#core/ports/accounts.ts';
import script from './account.json' with { type: 'json' };
import { fromCall, fromSum, nameOf, toAudited, toCounter, toMarking, toReply } from './account-text.ts';

/**
 * Runs the script atomically on the server of `key`. Returns its reply. Throws when the server is away or its reply is lost.
 */
export type Evaluate = (script: string, key: string, args: ReadonlyArray<string>) => Promise<unknown>;

export interface RedisAccountsDependencies {
  readonly evaluate: Evaluate;
  readonly instanceUid: string;
}

/** Every method is one evaluation of the script. Throws when the server is away, its reply is lost, or its layout is another version's. */
export function createRedisAccounts({ evaluate, instanceUid }: RedisAccountsDependencies): Accounts {
  if (!/^[^{}]+$/.test(instanceUid))
    throw new Error(`instance uid "${instanceUid}": must not be empty or contain braces`);
  const run = async <T>(operation: string, argument: object): Promise<T> => {
    const reply = await evaluate(script, `{${instanceUid}}:meta`, [operation, JSON.stringify(argument)]);
    if (typeof reply !== 'string') throw new Error('unexpected reply of the store: must be a text');
    // The script is part of this adapter.
    return JSON.parse(reply) as T;
  };
  return {
    async call(call) {
      return toReply(await run('call', fromCall(call)));
    },
    async load(epoch, sums) {
      if (sums.length > 0) await run('load', { epoch, sums: sums.map(fromSum) });
    },
    async read(counters) {
      if (counters.length === 0) return [];
      const states = await run<ReadonlyArray<false | [string, string]>>('read', { counters: counters.map(nameOf) });
      return states.map((state) => (state ? { spent: BigInt(state[0]), held: BigInt(state[1]) } : undefined));
    },
    async mark(epoch, account, how) {
      return toMarking(await run('mark', { ...how, epoch, account }));
    },
    async finish(epoch, account, isCharged) {
      await run('finish', { epoch, account, isCharged });
    },
    async accounts(isEnded, max) {
      type Reply = { accounts?: Awaited<ReturnType<Accounts['accounts']>> };
      return (await run<Reply>('accounts', { isEnded, max })).accounts ?? [];
    },
    async loaded(from, max) {
      const reply = await run<{ counters?: string[]; next?: number }>('loaded', { from: Number(from), max });
      const counters = (reply.counters ?? []).map(toCounter);
      return reply.next === undefined ? { counters } : { counters, next: `${reply.next}` };
    },
    async audit(epoch, sums, rows, deadline) {
      const of = { epoch, sums: sums.map(fromSum), rows: Object.fromEntries(rows), deadline: Math.floor(deadline) };
      return toAudited(await run('audit', of));
    },
    async begin(epoch) {
      return (await run<{ epoch: number }>('begin', { epoch })).epoch;
    },
    async clear() {
      await run('clear', {});
    },
  };
}
