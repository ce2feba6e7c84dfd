// The sample: its addresses are those of this machine, it is applied as by `kubectl apply`, and its key makes one call.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { VirtualKey } from '../../../../crds/kinds/virtual-key.ts';
import { reasonOf } from '../../../../functions/core/failure/error-text.ts';
import { err, ok, type Result } from '../../../../functions/core/failure/result.ts';
import { type Cluster, type KubeObject, RESOURCES } from '../../../../functions/core/ports/cluster.ts';
import { goJson } from '../../../apiserver/schema/go-format.ts';
import { put, readDocuments, resourceOf } from '../../../packaging/manifests/apply.ts';
import type { Endpoints, Stack } from '../stack.ts';
import type { Progress } from '../start.ts';
import { type State, writeWhole } from '../state/state.ts';

/** One chat completion with the sample's key, as any client makes it. */
export type FirstCall = Awaited<ReturnType<typeof makeFirstCall>>;

export const SAMPLE_KEY = { namespace: 'default', name: 'example-service' };
const MODEL = 'sample-small';

/**
 * Applies the sample and makes one real call with its key, which is charged. Objects of the sample that a person
 * changed stay as they are.
 */
export async function runSample(stack: Stack, state: State, { step, say }: Progress): Promise<FirstCall | undefined> {
  const text = renderSample(stack.endpoints, state.remembered.upstreamKey);
  writeWhole(state.path('sample.yaml'), text);
  const kept = await applySample(stack.cluster, readDocuments(text), state);
  step('sample      applied; waiting for its key');
  if (kept.length > 0)
    say(
      `        not updated, because you changed them: Secrets ${kept.join(', ')}. kubectl apply -f ${state.path('sample.yaml')} restores them`,
    );
  const key = await waitForKey(stack, 20_000);
  if (!key.ok) {
    say(`        the sample's key does not work: ${key.failure}`);
    return undefined;
  }
  step('sample      its key works; calling the gateway with it');
  return makeFirstCall(stack, key.value, `${stack.endpoints.gateway}/default/sample`).catch((error: unknown) => {
    say(`        the sample's call did not succeed: ${reasonOf(error)}`);
    return undefined;
  });
}

/**
 * Creates what is missing, and updates Secrets to this start's addresses. Objects that a person changed stay as they
 * are. Returns the names of such Secrets.
 */
export async function applySample(
  cluster: Cluster,
  objects: ReadonlyArray<KubeObject>,
  state: Pick<State, 'remembered' | 'rememberSampleSecret'>,
): Promise<ReadonlyArray<string>> {
  const kept: string[] = [];
  for (const object of objects) {
    const { namespace, name } = object.metadata;
    if (object.kind !== 'Secret') {
      await put(cluster, withLastApplied(object), false);
      continue;
    }
    const written = state.remembered.sampleSecrets[name];
    const live = await cluster.get(RESOURCES.secrets, namespace, name);
    const isChanged = live !== undefined && written !== undefined && hashOf(live) !== written;
    if (isChanged && hashOf(live) !== hashOf(object)) {
      kept.push(name);
      continue;
    }
    await put(cluster, withLastApplied(object), true);
    state.rememberSampleSecret(name, hashOf(object));
  }
  return kept;
}

function hashOf({ data }: KubeObject): string {
  const entries = Object.entries((data ?? {}) as Record<string, string>).sort();
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex');
}

/** The sample with these addresses; every `${base64:name}` must be known. */
export function renderSample(
  { database, upstream }: Pick<Endpoints, 'database' | 'upstream'>,
  upstreamKey: string,
): string {
  const values: Readonly<Record<string, string>> = {
    databaseHost: `${database.host}:${database.port}`,
    databaseUsername: database.username,
    databasePassword: database.password,
    databaseName: database.dbname,
    storeHost: 'memory',
    storePort: '6379',
    upstreamKey,
    upstreamBase: `${upstream}/v1`,
  };
  const text = readFileSync(join(import.meta.dirname, 'sample.yaml'), 'utf8');
  return text.replace(/\$\{base64:(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`sample.yaml: base64:${name}: not found`);
    return Buffer.from(value).toString('base64');
  });
}

/** With the annotation that `kubectl apply` leaves, to the byte, so that a person's first apply prints `unchanged`. */
function withLastApplied(object: KubeObject): KubeObject {
  const { annotations = {} } = object.metadata;
  const applied = `${goJson({ ...object, metadata: { ...object.metadata, annotations } })}\n`;
  const noted = { ...annotations, 'kubectl.kubernetes.io/last-applied-configuration': applied };
  return { ...object, metadata: { ...object.metadata, annotations: noted } };
}

/** The cluster, and a resync, which brings `status.currentSpend` up to date. */
type Caller = Pick<Stack, 'cluster' | 'resync'>;

/**
 * Waits until the sample's key works, by a status of this start. Returns its value, or why it does not work after
 * `timeout` milliseconds.
 */
export async function waitForKey(deps: Caller, timeout: number): Promise<Result<string, string>> {
  // Changed Secrets trigger nothing, and an earlier start left a status.
  await deps.resync();
  for (const until = Date.now() + timeout; ; await pause(150)) {
    const key = await readKey(deps.cluster);
    const value = key?.status?.isActive === true ? await readValue(deps.cluster, key.status.keySecretRef) : undefined;
    if (value !== undefined) return ok(value);
    if (Date.now() > until) return err(notReadyText(key));
  }
}

/** Calls the gateway with the key's value. Throws with the gateway's message if the call is refused. */
async function makeFirstCall(deps: Caller, value: string, url: string) {
  await deps.resync();
  const spendBefore = (await readKey(deps.cluster))?.status?.currentSpend ?? '0';
  const reply = await call(value, url);
  const text = await reply.text();
  if (!reply.ok) throw new Error(`the gateway answered ${reply.status}: ${text}`);
  const { choices, usage } = JSON.parse(text) as {
    choices: ReadonlyArray<{ message: { content: string } }>;
    usage: { prompt_tokens: number; completion_tokens: number };
  };
  await deps.resync();
  return {
    model: MODEL,
    reply: choices[0]?.message.content ?? '',
    tokens: { input: usage.prompt_tokens, output: usage.completion_tokens },
    spendBefore,
    spendAfter: (await readKey(deps.cluster))?.status?.currentSpend ?? '0',
  };
}

/** The gateway may still be reading changed Secrets: a 503, which costs nothing, is tried again for five seconds. */
async function call(value: string, url: string): Promise<Response> {
  for (const until = Date.now() + 5_000; ; await pause(250)) {
    const reply = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: MODEL,
        messages: [{ role: 'user', content: 'Say hello to a platform engineer.' }],
      }),
      signal: AbortSignal.timeout(20_000),
    });
    if (reply.status !== 503 || Date.now() > until) return reply;
    await reply.body?.cancel();
  }
}

async function readKey(cluster: Cluster): Promise<VirtualKey | undefined> {
  const found = await cluster.get(resourceOf('VirtualKey'), SAMPLE_KEY.namespace, SAMPLE_KEY.name);
  return found as unknown as VirtualKey | undefined;
}

/** Reads the key value from the Secret: `status.keyValue` has only a part if the instance has `Redacted`. */
async function readValue(cluster: Cluster, secretName: string | undefined): Promise<string | undefined> {
  if (secretName === undefined) return undefined;
  const secret = await cluster.get(RESOURCES.secrets, SAMPLE_KEY.namespace, secretName);
  const { key } = (secret?.data ?? {}) as Record<string, string>;
  return key === undefined ? undefined : Buffer.from(key, 'base64').toString();
}

function notReadyText(key: VirtualKey | undefined): string {
  if (key === undefined) return `VirtualKey ${SAMPLE_KEY.name} does not exist`;
  const ready = key.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready === undefined ? `VirtualKey ${SAMPLE_KEY.name} has no status yet` : `${ready.reason}: ${ready.message}`;
}
