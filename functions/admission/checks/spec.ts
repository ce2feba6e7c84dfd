// What does the object prove wrong by itself? The same as the CRD's schema and CEL, in words.
import { judge } from '#crds/judge.ts';
import type { AloneCheck } from '../check.ts';

export const spec: AloneCheck = ({ kind, object, old }) =>
  judge(kind, object, old).map((mistake) => ({ ...mistake, effect: 'refuse' }));
