// Is this an object of ours, and is it well-formed?
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Sharing } from '#core/ports/sharing.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { kinds } from '#crds/kinds.ts';
import { validate } from '#crds/validate.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { type Draft, idOf, type Malformed, type OwnObject, type Path, pathOf } from '../world.ts';

/** Where objects belong. */
export interface Collection extends Pick<Draft, 'users' | 'teams' | 'malformed' | 'mistakes'> {
  readonly instances: Map<Path, GatewayInstance>;
  readonly keys: Map<Path, VirtualKey>;
  /** Keeps once what many objects say alike. */
  readonly share?: Sharing;
}

/** Puts an object as the cluster has it where it belongs. What is not of our kinds is passed over. */
export function keep(into: Collection, object: KubeObject): void {
  const own = toOwn(object, into.share);
  if (own === undefined) return;
  const { object: read, mistakes } = own;
  const id = idOf(own.kind, own.metadata);
  if (mistakes.length === 0) into.mistakes.delete(id);
  else into.mistakes.set(id, mistakes);
  if (read === undefined) {
    into.malformed.set(id, own);
    return;
  }
  into.malformed.delete(id);
  const path = pathOf(read.metadata);
  if (read.kind === 'GatewayInstance') into.instances.set(path, read);
  else if (read.kind === 'VirtualKey') into.keys.set(path, read);
  else if (read.kind === 'User') into.users.set(path, read);
  else into.teams.set(path, read);
}

/** An object of our kinds: with its defaults, and undefined where it is malformed; and what breaks a rule about its own spec. */
export interface Own extends Malformed {
  readonly object: OwnObject | undefined;
}

/** Judged as admission judges it. A status that is none counts as absent: it is written anew. */
export function toOwn(object: KubeObject, share: Sharing = (value) => value): Own | undefined {
  const kind = kinds.find((own) => own.kind === object.kind && own.apiVersion === object.apiVersion);
  if (kind === undefined) return undefined;
  const { spec, violations: mistakes } = validate(kind, object);
  const seen = kind.status.safeParse(object.status);
  const status = seen.success ? share(seen.data as OwnObject['status']) : undefined;
  const metadata = share(toMetadata(object));
  const own = { apiVersion: kind.apiVersion, kind: kind.kind, metadata, status };
  // Planning reads every duration, so one without an end is as bad as none.
  const isMalformed = spec === undefined || mistakes.some(({ rule }) => rule === 'DurationTooLong');
  // The API server gives every stored object the metadata that our types demand; the kind decides the spec.
  return { ...own, mistakes, object: isMalformed ? undefined : ({ ...own, spec: share(spec) } as OwnObject) };
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** What we read of it (crds/object-meta.ts): the rest is more than half of an object. */
function toMetadata({ metadata }: KubeObject): OwnObject['metadata'] {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp } = metadata as OwnObject['metadata'];
  const { deletionTimestamp, labels, annotations, finalizers, ownerReferences } = metadata;
  const { [LAST_APPLIED]: _, ...others } = annotations ?? {};
  return {
    name,
    namespace,
    uid,
    resourceVersion,
    generation,
    creationTimestamp,
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations: others }),
    ...(finalizers === undefined ? {} : { finalizers }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
  };
}
