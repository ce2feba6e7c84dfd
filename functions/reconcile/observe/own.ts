// Objects of our kinds as the cluster has them: read, validated, and sorted by kind.
import type { KubeObject } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { kinds } from '#crds/kinds.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import { validate } from '#crds/validate.ts';
import type { Violation } from '#crds/violation.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { idOf, type Malformed, type ObjectId, type OwnObject, type Path, pathOf } from '../world.ts';

/** Objects by kind. */
export interface Collection {
  readonly instances: Map<Path, GatewayInstance>;
  readonly keys: Map<Path, VirtualKey>;
  readonly users: Map<Path, User>;
  readonly teams: Map<Path, Team>;
  readonly malformed: Map<ObjectId, Malformed>;
  readonly violations: Map<ObjectId, ReadonlyArray<Violation>>;
}

/** Puts an object where it belongs. What is not of our kinds is passed over. */
export function collect(into: Collection, object: KubeObject): void {
  const own = toOwn(object);
  if (own === undefined) return;
  const id = idOf(own.kind, own.metadata);
  if (own.violations.length > 0) into.violations.set(id, own.violations);
  const [read, path] = [own.object, pathOf(own.metadata)];
  if (read === undefined) into.malformed.set(id, own);
  else if (read.kind === 'GatewayInstance') into.instances.set(path, read);
  else if (read.kind === 'VirtualKey') into.keys.set(path, read);
  else if (read.kind === 'User') into.users.set(path, read);
  else into.teams.set(path, read);
}

export const emptyCollection = (): Collection => ({
  ...{ instances: new Map(), keys: new Map(), users: new Map(), teams: new Map() },
  ...{ malformed: new Map(), violations: new Map() },
});

/** An object of our kinds: with its defaults, and undefined where it is malformed; and what breaks a rule about its own spec. */
export interface Own extends Malformed {
  readonly object: OwnObject | undefined;
}

/** Validated as admission does it. A status that cannot be read counts as absent: it is written anew. */
export function toOwn(object: KubeObject): Own | undefined {
  const kind = kinds.find((own) => own.kind === object.kind && own.apiVersion === object.apiVersion);
  if (kind === undefined) return undefined;
  const { spec, violations } = validate(kind, object);
  const seen = kind.status.safeParse(object.status);
  const status = seen.success ? (seen.data as OwnObject['status']) : undefined;
  const own = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: toMetadata(object), status };
  // Planning reads every duration, so one without an end is as bad as none.
  const isMalformed = spec === undefined || violations.some(({ rule }) => rule === 'DurationTooLong');
  // The API server gives every stored object the metadata that our types demand; the kind decides the spec.
  return { ...own, violations, object: isMalformed ? undefined : ({ ...own, spec } as OwnObject) };
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Managed fields and what kubectl applied last are more than half of an object, and nothing reads them. */
function toMetadata({ metadata }: KubeObject): OwnObject['metadata'] {
  const { managedFields: _, annotations, ...rest } = metadata as OwnObject['metadata'] & { managedFields?: unknown };
  const { [LAST_APPLIED]: __, ...others } = annotations ?? {};
  return { ...rest, ...(annotations === undefined ? {} : { annotations: others }) };
}
