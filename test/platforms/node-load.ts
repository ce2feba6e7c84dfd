// Load on an installation: charged calls of a gateway, and writes that admission reviews. Each must succeed.
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import OpenAI from 'openai';
import type { Rig } from './rig.ts';

export const MESSAGES = [{ role: 'user' as const, content: 'Say hello.' }];

/** Milliseconds between two, at least. */
const CALLS = 100;
const PATCHES = 250;

export interface LoadOptions {
  readonly rig: Rig;
  /** The address of the gateway, and a key of it. */
  readonly baseURL: string;
  readonly apiKey: string;
  /** Keys of the namespace `default`, written in turn. */
  readonly keys: ReadonlyArray<string>;
}

export type Load = ReturnType<typeof startLoad>;

/** Runs until its `stop`, which answers the number of calls and patches, and all that failed. */
export function startLoad({ rig, baseURL, apiKey, keys }: LoadOptions) {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const faults: string[] = [];
  const counts = { calls: 0, patches: 0 };
  let isOver = false;
  const call = async () => {
    counts.calls += 1;
    await client.chat.completions.create({ model: 'echo', messages: MESSAGES });
  };
  const patch = async () => {
    const name = keys[counts.patches % keys.length];
    counts.patches += 1;
    const path = `/apis/auth.gateway-operator.dev/v1alpha1/namespaces/default/virtualkeys/${name}`;
    const annotations = { patch: `${counts.patches}` };
    const { status, body } = await rig.call('PATCH', path, { metadata: { annotations } });
    if (status !== 200) throw new Error(JSON.stringify(body));
  };
  const tried = (act: () => Promise<void>) => {
    const began = performance.now();
    return act().catch((error: Error) => {
      const millis = Math.round(performance.now() - began);
      // A broken connection's cause shows whether it had been used before.
      const cause = error.cause === undefined ? '' : inspect(error.cause, { depth: 4 });
      faults.push(`after ${millis} ms: ${error.message} ${cause}`);
    });
  };
  /** Many clients: none waits for another. */
  const often = async (act: () => Promise<void>, every: number) => {
    const going: Array<Promise<unknown>> = [];
    for (; !isOver; await pause(every)) going.push(tried(act));
    await Promise.all(going);
  };
  const running = Promise.all([often(call, CALLS), often(patch, PATCHES)]);
  return {
    async stop() {
      isOver = true;
      await running;
      return { ...counts, faults };
    },
  };
}
