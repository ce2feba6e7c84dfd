// What would an action lead to, if everything went well? A dry run learns this in place of what really happened.
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Claim } from '#core/ports/registry.ts';
import { AUTH_API_VERSION, FINALIZER, OWNED, OWNED_LABEL } from '#crds/group.ts';
import { VirtualKeySpec } from '#crds/virtual-key.ts';
import type { Action } from './action.ts';
import type { Fact } from './fact.ts';
import { foreseeSecret, foreseeValues, UNKNOWN } from './foresee-secrets.ts';
import { present } from './plan/key-secret.ts';
import { claimKey, type KeyView, objectIn, pathOf, sumKey, type World } from './world.ts';

/** Pure. Facts about objects that the world holds. */
export function foresee(action: Action, world: World, now: number): ReadonlyArray<Fact> {
  const path = pathOf(action);
  switch (action.action) {
    case 'AddFinalizer':
      return changed(action, world, (object) =>
        withMetadata(object, { finalizers: [...(object.metadata.finalizers ?? []), FINALIZER] }),
      );
    case 'RemoveFinalizer':
    case 'DeleteKey':
      return foreseeDeletion(action, world);
    case 'OpenDatabase': {
      const { instance } = action;
      const view = world.instances.get(instance);
      if (view === undefined) return [];
      const { time, claims, sums } = view;
      return [{ fact: 'opened', instance, time, claims, sums }];
    }
    case 'CloseInstance':
      return [{ fact: 'closed', instance: action.instance }];
    case 'CloseStray':
      return [{ fact: 'strayClosed', instance: action.instance, uid: action.uid }];
    case 'PublishSnapshot':
      return [{ fact: 'published', instance: path }];
    case 'DeleteSnapshot':
      return [{ fact: 'unpublished', instance: path, snapshot: action.snapshot }];
    case 'ApplyWorkload':
      return foreseePart(action, world);
    case 'DeleteWorkload':
      return [{ fact: 'part', instance: path, part: action.part, view: { there: false } }];
    case 'ClaimAlias':
      return [
        {
          fact: 'claim',
          instance: action.instance,
          key: claimKey(action.scope, action.alias),
          claim: foreseeClaim(action, world, now),
        },
      ];
    case 'RetireClaim':
      return [{ fact: 'retired', instance: action.instance, key: action.claim }];
    case 'WritePolicy': {
      const {
        write: { policy, recounts = [] },
      } = action;
      const sums = new Map(recounts.map(({ scopeId, window }) => [sumKey(scopeId, window), 0n]));
      return [
        { fact: 'policy', instance: action.instance, key: action.claim, policy },
        { fact: 'sums', instance: action.instance, sums },
      ];
    }
    case 'AddValue':
    case 'RetireValues':
    case 'RotateSecret':
      return foreseeValues(action, world);
    case 'CreateSecret':
    case 'UpdateSecret':
      return foreseeSecret(action, world.keys.get(path));
    case 'DeleteSecret': {
      const which = present(world.keys.get(path)?.previous)?.name === action.secret ? 'previous' : 'secret';
      return [{ fact: 'secret', key: path, which, view: { state: 'absent' } }];
    }
    case 'CreateKey':
      return [{ fact: 'key', view: foreseeKey(action, now) }];
    case 'UpdateKey':
      return changed({ kind: 'VirtualKey', namespace: action.namespace, name: action.key }, world, (object) => ({
        ...object,
        spec: Object.fromEntries(
          Object.entries({ ...(object.spec as object), ...action.spec }).filter(([, value]) => value !== null),
        ),
      }));
    case 'WriteStatus':
      return foreseeStatus(action, world);
    case 'RecordEvent':
      return [];
  }
}

type At = Pick<Action, 'kind' | 'namespace' | 'name'>;

function objectAt({ kind, namespace, name }: At, world: World): KubeObject | undefined {
  const found = objectIn(world, kind, pathOf({ namespace, name }));
  return found && { ...found };
}

function changed(at: At, world: World, change: (object: KubeObject) => KubeObject): ReadonlyArray<Fact> {
  const object = objectAt(at, world);
  return object === undefined ? [] : [{ fact: 'object', object: change(object) }];
}

const withMetadata = (object: KubeObject, metadata: Partial<KubeObject['metadata']>): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, ...metadata },
});

function foreseeDeletion(
  action: Extract<Action, { action: 'RemoveFinalizer' | 'DeleteKey' }>,
  world: World,
): ReadonlyArray<Fact> {
  const at: At =
    action.action === 'DeleteKey' ? { kind: 'VirtualKey', namespace: action.namespace, name: action.key } : action;
  const object = objectAt(at, world);
  const held = action.action === 'DeleteKey' && object?.metadata.finalizers?.includes(FINALIZER) === true;
  if (object === undefined || !held) return [{ fact: 'gone', kind: at.kind, at }];
  return [
    { fact: 'object', object: withMetadata(object, { deletionTimestamp: object.metadata.creationTimestamp ?? '' }) },
  ];
}

/** Its controller has said nothing of it yet, or what it said before. */
function foreseePart(action: Extract<Action, { action: 'ApplyWorkload' }>, world: World): ReadonlyArray<Fact> {
  const { part, object } = action;
  const instance = pathOf(action);
  const before = world.instances.get(instance)?.workload.parts.get(part);
  const live = before?.there === true ? before.object : undefined;
  const metadata = { uid: UNKNOWN, ...live?.metadata, ...object.metadata };
  const made = { ...live, ...object, metadata };
  const view = { there: true, object: made, ours: true, differs: [], differsHash: '', answered: true } as const;
  return [{ fact: 'part', instance, part, view }];
}

function foreseeClaim(action: Extract<Action, { action: 'ClaimAlias' }>, world: World, now: number): Claim {
  const { instance, scope: kind, alias, namespace, name } = action;
  const uid = objectAt(action, world)?.metadata.uid ?? '';
  const adopted = world.instances.get(instance)?.claims.get(claimKey(kind, alias));
  return {
    scopeId: `${kind} ${alias}`,
    kind,
    alias,
    anchor: now,
    values: [],
    ...adopted,
    holder: { uid, namespace, name },
  };
}

function foreseeKey(action: Extract<Action, { action: 'CreateKey' }>, now: number): KeyView {
  const { namespace, key: name, owner, spec } = action;
  const metadata = {
    name,
    namespace,
    uid: `${UNKNOWN} ${namespace}/${name}`,
    resourceVersion: UNKNOWN,
    generation: 1,
    creationTimestamp: new Date(now).toISOString(),
    labels: { [OWNED_LABEL]: OWNED },
    ownerReferences: [owner],
  };
  return {
    object: { apiVersion: AUTH_API_VERSION, kind: 'VirtualKey', metadata, spec: VirtualKeySpec.parse(spec) },
    secretName: `${name}-key`,
    secret: { state: 'absent' },
  };
}

function foreseeStatus(action: Extract<Action, { action: 'WriteStatus' }>, world: World): ReadonlyArray<Fact> {
  const view = world.keys.get(pathOf(action));
  const value = present(view?.secret)?.data.get('key');
  const { members, keyValue } = action.patch;
  return changed(action, world, (object) => {
    const status = { ...(object.status as object), ...members, ...(keyValue === undefined ? {} : { keyValue: value }) };
    return { ...object, status: Object.fromEntries(Object.entries(status).filter(([, member]) => member !== null)) };
  });
}
