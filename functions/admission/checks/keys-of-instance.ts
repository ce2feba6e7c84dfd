// Which keys belong to an instance? At most one page of them: an apply costs the same however many there are.
import type { KubeObject } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/resources.ts';
import type { Lookup } from '../lookup.ts';
import { KeyView, toView } from '../spec-views.ts';
import type { Draft } from '../subject.ts';

export const INSTANCE_FIELD = 'spec.connectionRef.instanceRef.name';

export async function keysOfInstance({ metadata }: Draft, lookup: Lookup, limit?: number): Promise<KubeObject[]> {
  if (metadata.name === undefined) return [];
  const named = await lookup.select(virtualKeys, { [INSTANCE_FIELD]: metadata.name }, limit);
  return named.filter(({ spec }) => toView(KeyView, spec).connectionRef?.instanceRef?.namespace === metadata.namespace);
}
