// What is there? Scope in, World out: everything that a run reads before it plans is read from here.
import { toText } from '#core/finding.ts';
import type { Millis } from '#core/ports/money.ts';
import { reasonOf } from '#core/reason.ts';
import { each } from './observe/each.ts';
import { findGone } from './observe/gone.ts';
import { observeInstance } from './observe/instance.ts';
import { observeKeys } from './observe/keys.ts';
import type { Link, Links } from './observe/links.ts';
import type { Look } from './observe/look.ts';
import { namespaceLabels, type Objects } from './observe/objects.ts';
import { clusterOf, findStrays } from './observe/strays.ts';
import { within } from './observe/within.ts';
import { type Draft, type InstanceDraft, instancePathOf, type Member, type Path, pathOf } from './world.ts';

export interface Observation {
  readonly world: Draft;
  readonly links: Links;
}

const INSTANCES = 16;
const SECRETS = 32;
/** Every adapter gives up long before: whatever hangs all the same does not hang the run. */
const LONGEST: Millis = 60_000;

/** One of the parts of all that the scope holds. Throws only when the API server does not say: then nothing is known, and nothing is planned. */
export async function observe(look: Look, objects: Objects, all: Objects): Promise<Observation> {
  const members: ReadonlyArray<Member> = [
    ...objects.keys.values(),
    ...objects.users.values(),
    ...objects.teams.values(),
  ];
  const byInstance = Map.groupBy(members, instancePathOf);
  const instances = new Map<Path, InstanceDraft>();
  const links = new Map<Path, Link>();
  const malformed = [...all.malformed.values()].filter(({ kind }) => kind === 'GatewayInstance');
  const unobserved = new Map(malformed.map(({ metadata, mistakes }) => [pathOf(metadata), toText(mistakes)]));
  await each(objects.instances, INSTANCES, async ([path, object]) => {
    const own = byInstance.get(path) ?? [];
    try {
      const looking = observeInstance(look, object, own, isComplete(objects, path));
      const { view, link } = await within(look.deps.timer, LONGEST, looking);
      const gone = await findGone(look.deps, view, own);
      instances.set(path, { ...view, gone, strays: await straysOf(look, view, link, all) });
      if (link !== undefined) links.set(path, link);
    } catch (error) {
      look.deps.log.error('an instance could not be looked at', { instance: path, why: reasonOf(error) });
      unobserved.set(path, reasonOf(error));
    }
  });
  const reading = { ...look, sweep: all.complete === 'all', count: all.keys.size };
  const world: Draft = {
    instances,
    keys: await observeKeys(reading, objects.keys, instances),
    users: objects.users,
    teams: objects.teams,
    malformed: objects.malformed,
    mistakes: objects.mistakes,
    unobserved,
    namespaces: await observeNamespaces(look, objects, members),
    failures: new Map(),
  };
  return { world, links };
}

/** Only where everything was listed: what is not there is then gone, or younger than the list. */
async function straysOf(
  { deps, memory }: Look,
  { object, database }: InstanceDraft,
  link: Link | undefined,
  objects: Objects,
): Promise<InstanceDraft['strays']> {
  if (objects.complete !== 'all' || link === undefined || !database.ok) return [];
  const cluster = await clusterOf(deps, memory);
  if (cluster === undefined) return [];
  const listed = [...objects.instances.values(), ...objects.malformed.values()].map(({ metadata }) => metadata.uid);
  try {
    return await findStrays(deps, link.registry, cluster, new Set(listed));
  } catch (error) {
    // A database that is yet to be migrated.
    deps.log.info('no instances could be looked for', { instance: pathOf(object.metadata), why: reasonOf(error) });
    return [];
  }
}

const isComplete = ({ complete }: Objects, path: Path): boolean => complete === 'all' || complete === path;

/** Only where an instance selects namespaces by label. */
async function observeNamespaces({ deps }: Look, objects: Objects, members: ReadonlyArray<Member>) {
  const selecting = members.filter(
    (member) => objects.instances.get(instancePathOf(member))?.spec.allowedNamespaces.from === 'Selector',
  );
  const names = new Set(selecting.map(({ metadata }) => metadata.namespace));
  const labels = await each(names, SECRETS, async (name) => [name, await namespaceLabels(deps.cluster, name)] as const);
  return new Map(labels);
}
