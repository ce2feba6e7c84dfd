// The store in a Redis, over TCP or HTTPS: one script whose words and answers are strings only (LEDGER 3, 4).
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { EntryName, StaleEpoch, Store } from '#core/ports/store.ts';
import { callWords, fromCounter } from './call-words.ts';
import { toReply } from './reply.ts';
import { SCRIPT } from './script.ts';
import { toLoaded, toSurvey, toUnbooked } from './survey.ts';
import { listOf, textOf } from './texts.ts';

/**
 * Runs the script in one step on the server that keeps `key`. Answers the script's reply, strings and lists of such.
 * Throws when the server cannot be asked or its answer is lost.
 */
export type Evaluate = (script: string, key: string, words: ReadonlyArray<string>) => Promise<unknown>;

export interface RedisStoreDependencies {
  readonly evaluate: Evaluate;
  readonly instanceUid: string;
}

export function createRedisStore({ evaluate, instanceUid }: RedisStoreDependencies): Store {
  if (!/^[^{}]+$/.test(instanceUid)) throw new Error(`"${instanceUid}" cannot name the keys of an instance`);
  const key = `{${instanceUid}}:epoch`;
  const ask = async (words: ReadonlyArray<string>): Promise<ReadonlyArray<unknown>> => {
    const reply = await evaluate(SCRIPT, key, words);
    if (!Array.isArray(reply)) throw new Error('the store did not answer as its script does');
    return reply;
  };
  return {
    async call(call) {
      const reply = await ask(callWords(call));
      return reply[0] === 'epoch' ? toStale(reply) : toReply(reply, call);
    },
    async forget(entries) {
      if (entries.length > 0) await ask(forgetWords(entries));
    },
    async read(counters) {
      if (counters.length === 0) return [];
      const [, spent] = await ask(['read', fromCounters(counters)]);
      return listOf(spent).map((amount) => (amount === '' ? undefined : BigInt(textOf(amount))));
    },
    async begin(epoch) {
      const [, begun] = await ask(['begin', `${epoch}`]);
      return Number(textOf(begun));
    },
    async survey(counters) {
      return toSurvey(await ask(['survey', fromCounters(counters)]));
    },
    async unbooked(silence, max) {
      return toUnbooked(await ask(['unbooked', `${silence}`, `${max}`]));
    },
    async loaded(from, max) {
      return toLoaded(await ask(['loaded', `${from}`, `${max}`]));
    },
    async clear() {
      await ask(['clear']);
    },
  };
}

const toStale = ([, now, epoch]: ReadonlyArray<unknown>): StaleEpoch => ({
  outcome: 'epoch',
  now: Number(textOf(now)),
  epoch: Number(textOf(epoch)),
});

const fromCounters = (counters: ReadonlyArray<ScopeWindow>): string => JSON.stringify(counters.map(fromCounter));

/** What was settled is most of it. */
function forgetWords(entries: ReadonlyArray<EntryName>): string[] {
  const others = entries.filter(({ kind }) => kind !== 'settled').map(({ id, kind }) => [id, kind]);
  const settled = entries.filter(({ kind }) => kind === 'settled').map(({ id }) => id);
  return ['forget', JSON.stringify(others), `${settled.length}`, ...settled];
}
