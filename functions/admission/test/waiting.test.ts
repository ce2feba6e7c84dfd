// The memory of a review that waits for the cluster.
import { expect, test } from 'vitest';
import type { KubeObject } from '#core/ports/cluster.ts';
import { GOOD, modelEntry, objectOf, requestOf } from '../../../test/admission/fixtures.ts';
import { memory } from '../../../test/gateway/memory.ts';
import { createHandle } from '../handle.ts';

const names = Array.from({ length: 20_000 }, (_, n) => `a${n}`);
const fieldsV1 = { 'f:metadata': { 'f:annotations': Object.fromEntries(names.map((name) => [`f:${name}`, {}])) } };
const annotated = objectOf('VirtualKey', GOOD.VirtualKey, {
  annotations: Object.fromEntries(names.map((name) => [name, ''])),
  managedFields: [{ manager: 'kubectl', operation: 'Update', fieldsType: 'FieldsV1', fieldsV1 }],
});

const keys = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`key-${n}`, 'x']));
const instanceWith = (secret: string) => {
  const models = Array.from({ length: 512 }, (_, n) =>
    modelEntry(`model-${n}`, { modelCredentials: { nameRef: `${secret}-${n}`, keys } }),
  );
  return objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models });
};
const instance = instanceWith('secret');

/** The number of reviews, and the memory that they may keep, as a multiple of their bytes. */
type WaitingCase = readonly [what: string, reviews: number, times: number, object: KubeObject, more: object];

test.each<WaitingCase>([
  ['objects with thousands of annotations, which are not kept', 16, 5, annotated, {}],
  ['instances of many small values', 4, 6, instance, { operation: 'UPDATE', oldObject: instanceWith('stored') }],
])('reviews that wait keep a small multiple of their bytes: %s', async (_, reviews, times, object, more) => {
  const bodyOf = (namespace: string) => {
    const request = requestOf(object, { namespace, ...more });
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
    return new TextEncoder().encode(JSON.stringify(review));
  };
  const bodies = Array.from({ length: reviews }, (_, n) => bodyOf(`n-${10 + n}`));
  const [body = bodyOf('')] = bodies;
  expect(body.length > 512 * 1024).toBe(object === instance);
  const waiting = Promise.withResolvers<never>();
  let asked = 0;
  const ask = () => {
    asked += 1;
    return waiting.promise;
  };
  const may = async () => true;
  const handle = createHandle({ cluster: { get: ask, list: ask, may } as never, hash: (text) => text });
  const send = (body: Uint8Array<ArrayBuffer>) =>
    handle(
      'validate',
      new Request('http://x/', { method: 'POST', body, headers: { 'content-length': `${body.length}` } }),
      new AbortController().signal,
    );
  const before = await memory();
  const sent = bodies.map(send);
  // All calls that may be concurrent. Each of the namespaces has its share of them.
  await expect.poll(() => asked).toBe(16);
  expect((await memory()) - before).toBeLessThan(times * reviews * body.length);
  waiting.reject(new Error('no answer'));
  for (const { result } of await Promise.all(sent)) expect(result).toBe('failed');
});
