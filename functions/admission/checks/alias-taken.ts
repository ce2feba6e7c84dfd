// Has another object of the same instance this alias? Advice only: two creates race, and the claim in the database decides.
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import type { Finding } from '../finding.ts';
import type { Lookup } from '../lookup.ts';
import type { Draft } from '../subject.ts';
import { sameInstance, toReference } from './instance-of.ts';
import { INSTANCE_FIELD } from './keys-of-instance.ts';

export interface AliasClaim {
  readonly object: Draft;
  readonly resource: Resource;
  /** The selectable field, and what stands there. */
  readonly field: string;
  readonly alias: string | undefined;
  /** The object that may have it: by default the judged one. */
  readonly owner?: string | undefined;
  /** Where the finding points, if not at the field. */
  readonly path?: string;
}

export async function aliasTaken(claim: AliasClaim, lookup: Lookup): Promise<Finding[]> {
  const { object, resource, field, alias, owner = object.metadata.name } = claim;
  const instance = toReference(object.spec);
  if (alias === undefined || alias === '' || instance === undefined) return [];
  const { namespace } = object.metadata;
  const isOwner = ({ metadata }: KubeObject) => metadata.namespace === namespace && metadata.name === owner;
  const same = await lookup.select(resource, { [field]: alias, [INSTANCE_FIELD]: instance.name });
  const other = same.find((one) => !isOwner(one) && sameInstance(one.spec, object.spec));
  if (other === undefined) return [];
  // What stands in another namespace is not everybody's to know by name.
  const who =
    other.metadata.namespace === namespace
      ? `${resource.kind} ${JSON.stringify(other.metadata.name)}`
      : `a ${resource.kind} of another namespace`;
  const message = `${who} has this already on instance ${JSON.stringify(`${instance.namespace}/${instance.name}`)}: choose another, or delete the other one first`;
  return [{ rule: 'AliasTaken', path: claim.path ?? field, value: alias, message, effect: 'refuse' }];
}
