// What does a review keep in memory while it waits for the cluster?
import { expect, test } from 'vitest';
import { GOOD, objectOf, requestOf } from '../../../test/admission/fixtures.ts';
import { memory } from '../../../test/gateway/memory.ts';
import { createHandle } from '../handle.ts';

const REVIEWS = 16;

test('reviews of objects with thousands of annotations keep their bytes, and not those annotations', async () => {
  const names = Array.from({ length: 20_000 }, (_, n) => `a${n}`);
  const fieldsV1 = { 'f:metadata': { 'f:annotations': Object.fromEntries(names.map((name) => [`f:${name}`, {}])) } };
  const object = objectOf('VirtualKey', GOOD.VirtualKey, {
    annotations: Object.fromEntries(names.map((name) => [name, ''])),
    managedFields: [{ manager: 'kubectl', operation: 'Update', fieldsType: 'FieldsV1', fieldsV1 }],
  });
  const bodyOf = (namespace: string) => {
    const request = requestOf(object, { namespace });
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
    return new TextEncoder().encode(JSON.stringify(review));
  };
  const bodies = Array.from({ length: REVIEWS }, (_, n) => bodyOf(`n-${10 + n}`));
  const [body = bodyOf('')] = bodies;
  expect(body.length).toBeLessThan(512 * 1024);
  const waiting = Promise.withResolvers<never>();
  let asked = 0;
  const ask = () => {
    asked += 1;
    return waiting.promise;
  };
  const handle = createHandle({ cluster: { get: ask, list: ask, may: ask } as never, hash: (text) => text });
  const send = (body: Uint8Array<ArrayBuffer>) =>
    handle(
      'validate',
      new Request('http://x/', { method: 'POST', body, headers: { 'content-length': `${body.length}` } }),
      new AbortController().signal,
    );
  const before = await memory();
  const reviews = bodies.map(send);
  await expect.poll(() => asked).toBeGreaterThanOrEqual(REVIEWS);
  expect((await memory()) - before).toBeLessThan(5 * REVIEWS * body.length);
  waiting.reject(new Error('no answer'));
  for (const { result } of await Promise.all(reviews)) expect(result).toBe('failed');
});
