// The sample: filled in with this machine's addresses, applied as `kubectl apply` would, and one paid call with its key.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../../functions/core/ports/cluster.ts';
import { reasonOf } from '../../../functions/core/reason.ts';
import { goJson } from '../../apiserver/schema/go-format.ts';
import { put, readDocuments } from '../../manifests/apply.ts';
import type { Progress } from '../progress.ts';
import type { Endpoints, Stack } from '../stack.ts';
import { type State, writeWhole } from '../state/state.ts';
import { type FirstCall, makeFirstCall, waitForKey } from './first-call.ts';

/** Applies the sample and pays one real call with its key. Objects of the sample that a person changed stay as they are. */
export async function runSample(stack: Stack, state: State, { step, say }: Progress): Promise<FirstCall | undefined> {
  const text = renderSample(stack.endpoints, state.remembered.upstreamKey);
  writeWhole(state.path('sample.yaml'), text);
  for (const object of readDocuments(text)) await put(stack.cluster, withLastApplied(object), object.kind === 'Secret');
  step('sample      applied; waiting for its key');
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
