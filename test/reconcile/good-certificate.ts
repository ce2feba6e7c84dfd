// Is the certificate of admission good: there, trusted by both configurations, and nothing left to do?
import { expect } from 'vitest';
import {
  createCertificateHarness as createHarness,
  type Entry,
  type CertificateHarness as Harness,
  MINUTE,
} from './certificates.ts';

export const isWrite = ({ verb }: { verb: string }) => verb !== 'get' && verb !== 'list';
export const writes = (harness: Harness) => harness.cluster.calls.filter(isWrite).length;
export const data = (harness: Harness) => (harness.secret()?.data ?? {}) as Record<string, string>;
export const bundle = (harness: Harness, index: 0 | 1) => {
  const [entry] = harness.hook(index).webhooks as Entry[];
  return harness.issuer.split(Buffer.from(entry?.clientConfig.caBundle ?? '', 'base64').toString());
};

export async function started(): Promise<Harness> {
  const harness = createHarness();
  await harness.applyHooks();
  expect(await harness.resync()).not.toHaveProperty('failed');
  return harness;
}

/** Minutes after something happened. */
const MOMENTS = [0, 1, 2, 3, 70];

export async function resyncs(harness: Harness, resync: () => Promise<unknown> = harness.resync): Promise<void> {
  const from = harness.clock.now();
  for (const minute of MOMENTS) {
    harness.clock.pass(from + minute * MINUTE - harness.clock.now());
    await resync();
  }
}

/** There is a good certificate, both configurations trust it, and the next resync has nothing to do. */
export async function expectGood(harness: Harness): Promise<void> {
  const serving = harness.serving();
  const before = writes(harness);
  expect(await harness.resync()).toEqual({ actions: [] });
  expect(writes(harness)).toBe(before);
  for (const index of [0, 1] as const) expect(bundle(harness, index)).toContain(serving?.ca);
  expect(harness.complaints()).toEqual([]);
}
