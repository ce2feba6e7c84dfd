// What is somebody told who applies an object of the good world, changed: why it is refused, and of what they are
// warned?
import type { KubeObject } from '#core/ports/cluster.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import type { AdmissionDependencies } from '../../functions/admission/app.ts';
import { ask, depsOf, GOOD, objectOf, requestOf, type World } from './fixtures.ts';

/** `world` is asked anew for each review: each test has its own. `more` is of the request (`oldObject`: an update). */
export function createReviews(world: () => World, deps: Partial<AdmissionDependencies> = {}) {
  const validate = (object: KubeObject, more = {}) =>
    ask(depsOf(world().cluster, deps), '/validate', requestOf(object, more));
  /** `refused` line by line; empty where it is let in. */
  const review = async (kind: KindName, change: object, metadata = {}, more = {}) => {
    const { status, warnings = [] } = await validate(objectOf(kind, { ...GOOD[kind], ...change }, metadata), more);
    return { refused: status?.message.split('\n') ?? [], warnings };
  };
  return { validate, review };
}

/** Another object than the one that is judged. */
export const spare = (name: string, spec: object, namespace = 'team-a', kind: KindName = 'VirtualKey'): KubeObject =>
  objectOf(kind, { ...GOOD[kind], ...spec }, { name, namespace });
