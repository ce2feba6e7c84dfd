// The accounts in Redis, over TCP or HTTPS: one script, whose argument and reply are JSON with amounts as strings (account.lua).
import type { Accounts } from '#core/ports/accounts.ts';
import script from './account.json' with { type: 'json' };
import * as text from './account-text.ts';
import type { Evaluate } from './store.ts';

export interface RedisAccountsDependencies {
  readonly evaluate: Evaluate;
  readonly instanceUid: string;
}

/** Every method is one evaluation of the script. Throws when the server is away, its reply is lost, or its layout is another version's. */
export function createRedisAccounts({ evaluate, instanceUid }: RedisAccountsDependencies): Accounts {
  if (!/^[^{}]+$/.test(instanceUid))
    throw new Error(`instance uid "${instanceUid}": must not be empty or contain braces`);
  const key = `{${instanceUid}}:meta`;
  const run = async <T>(operation: string, argument: object): Promise<T> => {
    const reply = await evaluate(script, key, [operation, JSON.stringify(argument)]);
    if (typeof reply !== 'string') throw new Error('unexpected reply of the store: must be a text');
    // Made by the script of this repository.
    return JSON.parse(reply) as T;
  };
  return {
    async call(call) {
      return text.toReply(await run('call', text.fromCall(call)));
    },
    async load(epoch, sums) {
      if (sums.length > 0) await run('load', { epoch, sums: sums.map(text.fromSum) });
    },
    async read(counters) {
      if (counters.length === 0) return [];
      const states = await run<ReadonlyArray<false | readonly [string, string]>>('read', {
        counters: counters.map(text.nameOf),
      });
      return states.map((state) => (state ? { spent: BigInt(state[0]), held: BigInt(state[1]) } : undefined));
    },
    async mark(epoch, account, how) {
      return text.toMarking(await run('mark', { epoch, account, ...how }));
    },
    async finish(epoch, account, isCharged) {
      await run('finish', { epoch, account, isCharged });
    },
    async accounts(isEnded, max) {
      return text.listOf(
        await run<text.List<{ account: string; number: number; unbooked: number }>>('accounts', { isEnded, max }),
      );
    },
    async loaded(from, max) {
      const page = await run<{ counters: text.List<string>; next?: number }>('loaded', { from: Number(from), max });
      const counters = text.listOf(page.counters).map(text.toCounter);
      return page.next === undefined ? { counters } : { counters, next: `${page.next}` };
    },
    async audit(epoch, sums, rows, deadline) {
      const of = {
        epoch,
        sums: sums.map(text.fromSum),
        rows: Object.fromEntries(rows),
        deadline: Math.floor(deadline),
      };
      return text.toAudited(await run('audit', of));
    },
    async begin(epoch) {
      return (await run<{ epoch: number }>('begin', { epoch })).epoch;
    },
    async clear() {
      await run('clear', {});
    },
  };
}
