import type { KubeObject } from '#core/ports/cluster.ts';
import type { KindName } from '#crds/kinds.ts';
import type { Fact } from './fact.ts';
import { type Collection, keep } from './observe/own.ts';
import { type Draft, type InstanceDraft, idOf, type KeyView, type Path, pathOf } from './world.ts';

export function learn(world: Draft, facts: Iterable<Fact>): void {
  for (const fact of facts) {
    if ('instance' in fact) learnOfInstance(world, fact);
    else learnOfObject(world, fact);
  }
}

type InstanceFact = Extract<Fact, { readonly instance: Path }>;

function learnOfObject(world: Draft, fact: Exclude<Fact, InstanceFact>): void {
  switch (fact.fact) {
    case 'object':
      learnObject(world, fact.object);
      return;
    case 'gone':
      forget(world, fact.kind, pathOf(fact.at));
      return;
    case 'key':
      world.keys.set(pathOf(fact.view.object.metadata), fact.view);
      return;
    case 'secret':
      changeKey(world, fact.key, { [fact.which]: fact.view });
      return;
    case 'valueRefused':
      changeKey(world, fact.key, { refusedHash: fact.hash });
      return;
  }
}

function learnObject(world: Draft, object: KubeObject): void {
  const own = { instances: new Map(), keys: new Map(), users: new Map(), teams: new Map() };
  const read: Collection = { ...own, malformed: new Map(), mistakes: new Map() };
  keep(read, object);
  for (const [path, instance] of read.instances) changeInstance(world, path, { object: instance });
  for (const [path, key] of read.keys) changeKey(world, path, { object: key });
  for (const [path, user] of read.users) world.users.set(path, user);
  for (const [path, team] of read.teams) world.teams.set(path, team);
  for (const [id, malformed] of read.malformed) world.malformed.set(id, malformed);
  const id = idOf(object.kind, { namespace: object.metadata.namespace ?? '', name: object.metadata.name });
  const mistakes = read.mistakes.get(id);
  if (mistakes === undefined) world.mistakes.delete(id);
  else world.mistakes.set(id, mistakes);
}

function forget(world: Draft, kind: KindName, path: Path): void {
  const maps = { GatewayInstance: world.instances, VirtualKey: world.keys, User: world.users, Team: world.teams };
  maps[kind].delete(path);
  world.malformed.delete(`${kind}/${path}`);
  world.mistakes.delete(`${kind}/${path}`);
}

function learnOfInstance(world: Draft, fact: InstanceFact): void {
  const view = world.instances.get(fact.instance);
  if (view === undefined) return;
  if ('key' in fact) learnOfClaim(view, fact);
  else if (fact.fact === 'sums') for (const [key, spent] of fact.sums) view.sums.set(key, spent);
  else changeInstance(world, fact.instance, changesOf(view, fact));
}

type ClaimFact = Extract<InstanceFact, { readonly key: string }>;

function changesOf(
  view: InstanceDraft,
  fact: Exclude<InstanceFact, ClaimFact | { readonly fact: 'sums' }>,
): Partial<InstanceDraft> {
  const { database, snapshot, workload } = view;
  switch (fact.fact) {
    case 'opened':
      return {
        database: { ok: true, message: database.message, opened: true },
        time: fact.time,
        ...(fact.adopted === undefined ? {} : { adopted: fact.adopted }),
        claims: new Map(fact.claims),
        sums: new Map(fact.sums),
      };
    case 'closed':
      return { claims: new Map() };
    case 'strayClosed':
      return { strays: view.strays.filter(({ uid }) => uid !== fact.uid) };
    case 'unreachable':
      return { database: { ok: false, reason: fact.reason, message: fact.message } };
    case 'claims':
      return { claims: new Map(fact.claims) };
    case 'published':
      return { snapshot: { ...snapshot, published: true } };
    case 'unpublished':
      return { snapshot: { ...snapshot, older: snapshot.older.filter(({ name }) => name !== fact.snapshot) } };
    case 'part':
      return { workload: { ...workload, parts: new Map([...workload.parts, [fact.part, fact.view]]) } };
    case 'workloadRefused':
      return { workload: { ...workload, refused: fact.problem } };
  }
}

/** In place: there may be a hundred thousand of them. */
function learnOfClaim({ claims, taken }: InstanceDraft, fact: ClaimFact): void {
  const claim = claims.get(fact.key);
  if (fact.fact === 'claim') claims.set(fact.key, fact.claim);
  else if (fact.fact === 'taken') taken.set(fact.key, fact.by);
  else if (fact.fact === 'retired') claims.delete(fact.key);
  else if (claim === undefined) return;
  else if (fact.fact === 'values') claims.set(fact.key, { ...claim, values: fact.values });
  else claims.set(fact.key, { ...claim, policy: fact.policy });
}

function changeInstance(world: Draft, path: Path, changes: Partial<InstanceDraft>): void {
  const view = world.instances.get(path);
  if (view !== undefined) world.instances.set(path, { ...view, ...changes });
}

function changeKey(world: Draft, path: Path, changes: Partial<KeyView>): void {
  const view = world.keys.get(path);
  if (view !== undefined) world.keys.set(path, { ...view, ...changes });
}

/** Nothing more is tried for the object in this run; its status says why. */
export function giveUp(
  world: Draft,
  action: { readonly kind: string; readonly namespace: string; readonly name: string },
  why: string,
): void {
  world.failures.set(idOf(action.kind, action), why);
}
