// Does the object ask for something that nothing acts on yet? It is kept and judged, and said, so that nothing is ignored silently.
import { unactedIn } from '#crds/acted-on.ts';
import type { Check } from '../check.ts';

/** Text that people read, and nothing has to act on. Admission itself fills in the user's alias. */
const FOR_PEOPLE: ReadonlySet<string> = new Set(['spec.userAlias', 'spec.tags', 'spec.metadata']);

export const withoutEffect: Check = async ({ kind, object }) =>
  unactedIn(kind, object.spec)
    .filter(({ path }) => !FOR_PEOPLE.has(path))
    .map(({ path }) => {
      const message = 'this version accepts the field and does nothing with it yet';
      return { rule: 'WithoutEffect', path, value: undefined, message, effect: 'warn' };
    });
