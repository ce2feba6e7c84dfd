// What does the object prove wrong by itself? The same as the CRD's schema and CEL, in words.
import type { Finding } from '#core/finding.ts';
import { isGood } from '#crds/good.ts';
import type { AloneCheck } from '../check.ts';
import type { Subject } from '../subject.ts';

export const spec: AloneCheck = (subject) =>
  isGood(subject.kind, subject.object, subject.old) ? [] : mistakesOf(subject);

/** The schemas, which have the words, are loaded only here: a process that meets good objects starts without them. */
async function mistakesOf({ kind, object, old }: Subject): Promise<Finding[]> {
  const [{ judge }, { kindOf }] = await Promise.all([import('#crds/judge.ts'), import('#crds/kinds.ts')]);
  return judge(kindOf[kind.kind], object, old).map((mistake) => ({ ...mistake, effect: 'refuse' }));
}
