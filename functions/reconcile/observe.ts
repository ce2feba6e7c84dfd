// Observing: the world of one part of a run, and again what the run has touched.
import { toText } from '#core/finding.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import { reasonOf } from '#core/reason.ts';
import { mapConcurrent, withTimeout } from './concurrent.ts';
import type { Link } from './memory.ts';
import type { Draft, ObserveContext, Observed } from './observe/context.ts';
import { observeInstance } from './observe/instance.ts';
import { observeKeys } from './observe/keys.ts';
import type { Objects } from './observe/objects.ts';
import { findOrphanedClaims, findOrphanedInstances } from './observe/orphans.ts';
import { instancePathOf, type Member, type Path, pathOf } from './world.ts';

/** Plans of one run, this one included; a run that never ends is a bug that must not go on for ever. */
export const MAX_ROUNDS = 8;

const WIDTH = 16;
/** Every adapter gives up long before: an instance that hangs all the same does not hang the run. */
const LONGEST: Millis = 60_000;

/** Throws only when the API server does not say what there is: then nothing is known, and nothing is planned. */
export async function observe(context: ObserveContext, part: Objects, all: Objects): Promise<Observed> {
  const { deps } = context;
  const members = [...part.keys.values(), ...part.users.values(), ...part.teams.values()];
  const byInstance = Map.groupBy(members, instancePathOf);
  const { gatewayImage, version, manyProcesses } = deps.platform;
  const malformed = [...all.malformed.values()].filter(({ kind }) => kind === 'GatewayInstance');
  const world: Draft = {
    ...{ instances: new Map(), keys: new Map(), users: part.users, teams: part.teams },
    ...{ malformed: part.malformed, violations: part.violations },
    unobserved: new Map(malformed.map(({ metadata, violations }) => [pathOf(metadata), toText(violations)])),
    namespaces: await observeNamespaces(context, part, members),
    ...{ failures: new Map(), attempts: new Map(), roundsLeft: MAX_ROUNDS },
    platform: { gatewayImage, version, manyProcesses, knative: await context.offersKnative() },
  };
  const links = new Map<Path, Link>();
  await mapConcurrent(part.instances, WIDTH, async ([path, object]) => {
    try {
      const isComplete = part.complete === 'all' || part.complete === path;
      const looking = observeInstance(context, object, isComplete);
      const { view, link } = await withTimeout(deps.timer, LONGEST, looking);
      const orphanedClaims = await findOrphanedClaims(context, view, byInstance.get(path) ?? []);
      const orphans = await findOrphanedInstances(context, view, link, all);
      world.instances.set(path, { ...view, orphanedClaims, orphans });
      if (link !== undefined) links.set(path, link);
    } catch (error) {
      deps.log.error('an instance could not be looked at', { instance: path, why: reasonOf(error) });
      world.unobserved.set(path, reasonOf(error));
    }
  });
  for (const [path, view] of await observeKeys(context, part.keys, world.instances, all.keys.size))
    world.keys.set(path, view);
  return { world, links };
}

/** Labels of the namespaces whose members an instance selects by label. */
async function observeNamespaces({ deps }: ObserveContext, objects: Objects, members: ReadonlyArray<Member>) {
  const selected = members.filter(
    (member) => objects.instances.get(instancePathOf(member))?.spec.allowedNamespaces.from === 'Selector',
  );
  const names = new Set(selected.map(({ metadata }) => metadata.namespace));
  const labels = await mapConcurrent(names, WIDTH, async (name) => {
    const namespace = await deps.cluster.get(RESOURCES.namespaces, undefined, name);
    return [name, { ...namespace?.metadata.labels, 'kubernetes.io/metadata.name': name }] as const;
  });
  return new Map(labels);
}
