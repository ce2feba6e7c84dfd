import { expect, test } from 'vitest';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { type BackendsDependencies, createBackends } from './backends.ts';

const SHARED = { type: 'redis', host: 'redis', port: 6379, password: '', tls: false } as const;
const at = (host: string): DatabaseConnection => ({ host, port: 5432, username: 'u', password: 'p', dbname: 'd' });

/** Flushes that end when they are told to. */
function underTest() {
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  type Openable = ReturnType<BackendsDependencies<never>['openDatabase']>;
  const backends = createBackends<Openable>({
    openDatabase: () => ({ close: async () => undefined }) as Openable,
    flush: (uid) =>
      new Promise((resolve, reject) => {
        begun.push(uid);
        ends.set(uid, (error) => (error === undefined ? resolve() : reject(error)));
      }),
    probeShared: async () => ({ ok: true }),
  });
  return { backends, begun, ends };
}

test('four instances of one database are flushed at a time, the others in order; another database is not waited for', async () => {
  const { backends, begun, ends } = underTest();
  const flushes = ['1', '2', '3', '4', '5', '6'].map((uid) => backends.flush(uid, SHARED, at('one')));
  const other = backends.flush('7', SHARED, at('other'));
  expect(begun).toEqual(['1', '2', '3', '4', '7']);
  ends.get('3')?.(new Error('the store is away'));
  await expect(flushes[2]).rejects.toThrow('the store is away');
  expect(begun).toEqual(['1', '2', '3', '4', '7', '5']);
  for (const uid of ['1', '2', '4', '5', '7']) ends.get(uid)?.();
  await Promise.all([other, ...[0, 1, 3, 4].map((place) => flushes[place])]);
  expect(begun).toEqual(['1', '2', '3', '4', '7', '5', '6']);
  ends.get('6')?.();
  await flushes[5];
});
