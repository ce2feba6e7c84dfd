// The first call: one chat completion with the sample's key, as any client makes it.

import { setTimeout as pause } from 'node:timers/promises';
import type { VirtualKey } from '../../../crds/virtual-key.ts';
import { type Cluster, RESOURCES } from '../../../functions/core/ports/cluster.ts';
import { err, ok, type Result } from '../../../functions/core/result.ts';
import { resourceOf } from '../../manifests/apply.ts';

export interface FirstCall {
  readonly model: string;
  readonly reply: string;
  readonly tokens: { readonly input: number; readonly output: number };
  readonly spendBefore: string;
  readonly spendAfter: string;
}

export interface FirstCallDependencies {
  readonly cluster: Cluster;
  /** Runs one sweep, so that `status.currentSpend` is true. */
  readonly sweep: () => Promise<void>;
}

export const SAMPLE_KEY = { namespace: 'default', name: 'example-service' };
const MODEL = 'sample-small';

/** Waits until the sample's key works. Answers its value, or why it does not work after `patience` milliseconds. */
export async function waitForKey(deps: FirstCallDependencies, patience: number): Promise<Result<string, string>> {
  for (const until = Date.now() + patience; ; await pause(150)) {
    const key = await readKey(deps.cluster);
    const value = key?.status?.isActive === true ? await readValue(deps.cluster, key.status.keySecretRef) : undefined;
    if (value !== undefined) return ok(value);
    if (Date.now() > until) return err(whyNot(key));
  }
}

/** Calls the gateway with the key's value. Throws with the gateway's own words when it refuses. */
export async function makeFirstCall(deps: FirstCallDependencies, value: string, url: string): Promise<FirstCall> {
  await deps.sweep();
  const spendBefore = (await readKey(deps.cluster))?.status?.currentSpend ?? '0';
  const reply = await fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'Say hello to a platform engineer.' }] }),
    signal: AbortSignal.timeout(20_000),
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`the gateway answered ${reply.status}: ${text}`);
  const { choices, usage } = JSON.parse(text) as {
    choices: ReadonlyArray<{ message: { content: string } }>;
    usage: { prompt_tokens: number; completion_tokens: number };
  };
  await deps.sweep();
  return {
    model: MODEL,
    reply: choices[0]?.message.content ?? '',
    tokens: { input: usage.prompt_tokens, output: usage.completion_tokens },
    spendBefore,
    spendAfter: (await readKey(deps.cluster))?.status?.currentSpend ?? '0',
  };
}

async function readKey(cluster: Cluster): Promise<VirtualKey | undefined> {
  const found = await cluster.get(resourceOf('VirtualKey'), SAMPLE_KEY.namespace, SAMPLE_KEY.name);
  return found as unknown as VirtualKey | undefined;
}

/** Read from the Secret: `status.keyValue` shows a part only where the instance says `Redacted`. */
async function readValue(cluster: Cluster, secretName: string | undefined): Promise<string | undefined> {
  if (secretName === undefined) return undefined;
  const secret = await cluster.get(RESOURCES.secrets, SAMPLE_KEY.namespace, secretName);
  const { key } = (secret?.data ?? {}) as Record<string, string>;
  return key === undefined ? undefined : Buffer.from(key, 'base64').toString();
}

function whyNot(key: VirtualKey | undefined): string {
  if (key === undefined) return `VirtualKey ${SAMPLE_KEY.name} is not there`;
  const ready = key.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready === undefined ? `VirtualKey ${SAMPLE_KEY.name} has no status yet` : `${ready.reason}: ${ready.message}`;
}
