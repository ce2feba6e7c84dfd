// Does an annotation with our prefix do nothing? It is kept, and said, so that nothing is ignored silently.
import { strayAnnotations as judgeNames } from '#core/rules/stray-annotations.ts';
import type { Check } from '../check.ts';

export const strayAnnotations: Check = ({ kind, object }) =>
  judgeNames(kind.kind, Object.keys(object.metadata.annotations));
