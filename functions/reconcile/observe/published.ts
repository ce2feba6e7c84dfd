// What would the gateway be told of an instance, and is that published?
import { compile } from '#core/compile.ts';
import { snapshotName } from '#core/names.ts';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { OWNED, OWNED_LABEL } from '#crds/group.ts';
import { SNAPSHOTS_LEFT, type SnapshotView } from '../world.ts';
import type { Look } from './look.ts';

export async function observeSnapshot(
  { deps }: Look,
  { metadata, spec, status }: GatewayInstance,
): Promise<SnapshotView> {
  const text = JSON.stringify(compile(metadata, spec));
  const hash = deps.hash(text).slice(0, 16);
  const name = snapshotName(metadata.name, hash);
  const isOurs = ({ metadata: { labels, ownerReferences } }: KubeObject) =>
    labels?.[OWNED_LABEL] === OWNED && ownerReferences?.some(({ uid }) => uid === metadata.uid) === true;
  const there = await deps.cluster.get(RESOURCES.configMaps, metadata.namespace, name);
  const published = there !== undefined && isOurs(there);
  const isTidy = status?.conditions?.some(({ type }) => type === SNAPSHOTS_LEFT) !== true;
  const steady = published && isTidy && status?.snapshotHash === hash;
  const all = steady
    ? []
    : await deps.cluster.list(RESOURCES.configMaps, {
        namespace: metadata.namespace,
        labelSelector: `${OWNED_LABEL}=${OWNED}`,
      });
  const older = all
    .filter((map) => isOurs(map) && map.metadata.name !== name)
    .sort((a, b) => ((a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? 1 : -1))
    .map((map) => ({ name: map.metadata.name, uid: map.metadata.uid ?? '' }));
  return { hash, name, text, bytes: new TextEncoder().encode(text).length, published, older };
}
