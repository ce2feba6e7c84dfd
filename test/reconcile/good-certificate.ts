// Is the certificate of admission good: there, trusted by both configurations, and nothing left to do?
import { expect } from 'vitest';
import { type CertificateBed as Bed, createCertificateBed as createBed, type Entry, MINUTE } from './certificates.ts';

export const isWrite = ({ verb }: { verb: string }) => verb !== 'get' && verb !== 'list';
export const writes = (bed: Bed) => bed.cluster.calls.filter(isWrite).length;
export const data = (bed: Bed) => (bed.secret()?.data ?? {}) as Record<string, string>;
export const bundle = (bed: Bed, index: 0 | 1) => {
  const [entry] = bed.hook(index).webhooks as Entry[];
  return bed.issuer.split(Buffer.from(entry?.clientConfig.caBundle ?? '', 'base64').toString());
};

export async function started(): Promise<Bed> {
  const bed = createBed();
  await bed.applyHooks();
  expect(await bed.sweep()).not.toHaveProperty('failed');
  return bed;
}

/** Minutes after something happened. */
const MOMENTS = [0, 1, 2, 3, 70];

export async function sweeps(bed: Bed, sweep: () => Promise<unknown> = bed.sweep): Promise<void> {
  const from = bed.clock.now();
  for (const minute of MOMENTS) {
    bed.clock.pass(from + minute * MINUTE - bed.clock.now());
    await sweep();
  }
}

/** There is a good certificate, both configurations trust it, and the next sweep has nothing to do. */
export async function expectGood(bed: Bed): Promise<void> {
  const serving = bed.serving();
  const before = writes(bed);
  expect(await bed.sweep()).toEqual({ actions: [] });
  expect(writes(bed)).toBe(before);
  for (const index of [0, 1] as const) expect(bundle(bed, index)).toContain(serving?.ca);
  expect(bed.complaints()).toEqual([]);
}
