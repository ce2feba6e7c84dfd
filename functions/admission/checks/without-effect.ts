// Does the object ask for something that nothing acts on yet? It is kept and judged, and said, so that nothing is ignored silently.
import { unactedIn } from '#crds/acted-on.ts';
import type { Check } from '../check.ts';

export const withoutEffect: Check = ({ kind, object }) =>
  unactedIn(kind, object.spec).map(({ path }) => {
    const message = 'this version accepts the field and does nothing with it yet; do not rely on it';
    return { rule: 'WithoutEffect', path, value: undefined, message, effect: 'warn' };
  });
