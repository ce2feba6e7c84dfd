// Is this an object of ours, and is it well-formed?
import { parseDuration } from '#core/duration.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { gatewayInstances, type Kind, teams, users, virtualKeys } from '#crds/kinds.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { idOf, type Malformed, type ObjectId, type OwnObject, type Path, pathOf } from '../world.ts';

/** The kinds, by the name that a CRD gives them. */
export const OWN: Readonly<Record<OwnObject['kind'], Kind>> = {
  GatewayInstance: gatewayInstances,
  VirtualKey: virtualKeys,
  User: users,
  Team: teams,
};

/** Where objects belong. */
export interface Collection {
  readonly instances: Map<Path, GatewayInstance>;
  readonly keys: Map<Path, VirtualKey>;
  readonly users: Map<Path, User>;
  readonly teams: Map<Path, Team>;
  readonly malformed: Map<ObjectId, Malformed>;
}

/** Puts an object as the cluster has it where it belongs. What is not of our kinds is passed over. */
export function keep(into: Collection, object: KubeObject): void {
  const read = toOwn(object);
  if (read === undefined) return;
  const id = idOf(read.kind, read.metadata);
  if ('problem' in read) {
    into.malformed.set(id, read);
    return;
  }
  into.malformed.delete(id);
  const path = pathOf(read.metadata);
  if (read.kind === 'GatewayInstance') into.instances.set(path, read);
  else if (read.kind === 'VirtualKey') into.keys.set(path, read);
  else if (read.kind === 'User') into.users.set(path, read);
  else into.teams.set(path, read);
}

/** An object of ours with its defaults, or what is wrong with it. A status that is none counts as absent: it is written anew. */
export function toOwn(object: KubeObject): OwnObject | Malformed | undefined {
  const kind = Object.values(OWN).find((own) => own.kind === object.kind && own.apiVersion === object.apiVersion);
  if (kind === undefined) return undefined;
  const spec = kind.spec.safeParse(object.spec);
  const status = kind.status.safeParse(object.status);
  const metadata = object.metadata as OwnObject['metadata'];
  const seen = status.success ? (status.data as OwnObject['status']) : undefined;
  if (!spec.success) {
    const [issue] = spec.error.issues;
    const problem = `spec.${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is malformed'}`;
    return { kind: kind.kind, metadata, status: seen, problem };
  }
  const endless = durationsOf(spec.data as OwnObject['spec']).find((text) => parseDuration(text) === undefined);
  if (endless !== undefined) {
    const problem = `spec: ${JSON.stringify(endless)} is not a duration of at most 36525 days`;
    return { kind: kind.kind, metadata, status: seen, problem };
  }
  // The API server gives every stored object the metadata that our types demand; the kind decides the spec.
  return { apiVersion: kind.apiVersion, kind: kind.kind, metadata, spec: spec.data, status: seen } as OwnObject;
}

/** Whatever planning parses as a duration: their length is a rule that the schema alone does not know. */
function durationsOf(spec: OwnObject['spec']): ReadonlyArray<string> {
  const all =
    'routing' in spec
      ? [
          ...Object.values(spec.routing.timeouts),
          spec.routing.cooldown.within,
          spec.routing.cooldown.duration,
          ...spec.models.map(({ gatewayParams }) => gatewayParams.timeout),
        ]
      : [
          spec.budgetDuration,
          'duration' in spec ? spec.duration : undefined,
          ...('rotation' in spec ? [spec.rotation?.every, spec.rotation?.overlap] : []),
        ];
  return all.filter((text) => text !== undefined);
}
