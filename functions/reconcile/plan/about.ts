// Which object is an action about?
import type { OwnObject } from '../world.ts';

export const about = ({ kind, metadata }: Pick<OwnObject, 'kind' | 'metadata'>, why: string) => ({
  kind,
  namespace: metadata.namespace,
  name: metadata.name,
  why,
});
