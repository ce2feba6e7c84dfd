// The share of a part in what databases and stores may answer.
import type { ObserveContext } from './context.ts';
import type { Collection } from './objects.ts';

/** A part holds what it is answered, and everything that it asked ends with it. */
export async function withShare<T>(
  context: ObserveContext,
  { keys, users, teams }: Pick<Collection, 'keys' | 'users' | 'teams'>,
  run: (context: ObserveContext) => Promise<T>,
): Promise<T> {
  const { deps } = context;
  const { backends, end } = deps.backends.begin(keys.size + users.size + teams.size);
  try {
    return await run({ ...context, deps: { ...deps, backends } });
  } finally {
    end();
  }
}
