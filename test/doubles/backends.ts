// Backends of a test, whose databases and stores answer with little.
import { type Backends, DatabaseUnreachable } from '#core/ports/backends.ts';

export function backendsOf(calls: Omit<Backends, 'begin'>): Backends {
  const begin: Backends['begin'] = () => {
    const { promise: ended, reject } = Promise.withResolvers<never>();
    ended.catch(() => undefined);
    const end = (why = 'was not asked to the end') => reject(new DatabaseUnreachable(`PostgreSQL ${why}`));
    const database: Backends['database'] = (connection) =>
      new Proxy(calls.database(connection), {
        get: (target, name) => {
          const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
          return async (...args: unknown[]) => Promise.race([ended, call(...args)]);
        },
      });
    return { backends: { ...calls, begin, database }, end };
  };
  return { ...calls, begin };
}
