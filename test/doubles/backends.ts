// Backends of a test, whose databases and stores answer with little.
import type { Backends } from '#core/ports/backends.ts';

export function backendsOf(calls: Omit<Backends, 'begin'>): Backends {
  const backends: Backends = { ...calls, begin: () => ({ backends, end: () => undefined }) };
  return backends;
}
