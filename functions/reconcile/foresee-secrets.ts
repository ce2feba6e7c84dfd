// What would become of a key's values, and of the Secret that holds one of them?
import type { Claim } from '#core/ports/registry.ts';
import type { Action, SecretShape } from './action.ts';
import type { Fact } from './fact.ts';
import { dataOf, metadataOf, ownersAfter, present } from './plan/key-secret.ts';
import { type KeyView, type PresentSecret, pathOf, type World } from './world.ts';

/** Stands for what only doing can know: ids, and the hash of a value that is not made. */
export const UNKNOWN = '(known after the run)';

export function foreseeValues(
  action: Extract<Action, { action: 'AddValue' | 'RetireValues' | 'RotateSecret' }>,
  world: World,
): ReadonlyArray<Fact> {
  const { instance, claim: key, namespace, name } = action;
  const { claims, time } = world.instances.get(instance) ?? { claims: new Map<string, Claim>(), time: 0 };
  const before = claims.get(key)?.values ?? [];
  const known = (values: Claim['values']): Fact => ({ fact: 'values', instance, key, values });
  if (action.action === 'RetireValues') {
    const { hashes, overlap } = action;
    if (overlap === undefined) return [known(before.filter(({ hash }) => !hashes.includes(hash)))];
    return [
      known(before.map((value) => (hashes.includes(value.hash) ? { notAfter: time + overlap, ...value } : value))),
    ];
  }
  const hash = action.action === 'AddValue' ? action.hash : `${UNKNOWN} ${namespace}/${name}`;
  const asked = action.asked ?? before.at(-1)?.asked;
  const after = known([...before, { hash, createdAt: time, ...(asked === undefined ? {} : { asked }) }]);
  const secret = present(world.keys.get(pathOf(action))?.secret);
  if (action.action === 'AddValue' || secret === undefined) return [after];
  const view = written(secret, action.shape, { value: UNKNOWN, hash });
  return [after, { fact: 'secret', key: pathOf(action), which: 'secret', view }];
}

export function foreseeSecret(
  action: Extract<Action, { action: 'CreateSecret' | 'UpdateSecret' }>,
  view: KeyView | undefined,
): ReadonlyArray<Fact> {
  const { namespace, name, shape } = action;
  const source = present(action.action === 'CreateSecret' ? view?.previous : view?.secret);
  const made = { value: UNKNOWN, hash: `${UNKNOWN} ${namespace}/${name}`, minted: true };
  const shown = { value: view?.object.status?.keyValue ?? UNKNOWN, hash: view?.statusHash };
  const kept = { value: source?.data.get('key') ?? UNKNOWN, hash: source?.hash };
  const content = action.value === 'new' ? made : action.value === 'status' ? shown : kept;
  const secret = written(present(view?.secret), shape, content);
  return [{ fact: 'secret', key: pathOf(action), which: 'secret', view: secret }];
}

interface Content {
  readonly value: string;
  readonly hash: string | undefined;
  readonly minted?: boolean;
}

/** A Secret as its shape makes it, over the one that is there. */
function written(
  there: PresentSecret | undefined,
  shape: SecretShape,
  { value, hash, minted }: Content,
): PresentSecret {
  const metadata = metadataOf(there, shape);
  return {
    state: 'present',
    name: shape.name,
    uid: there?.uid ?? UNKNOWN,
    resourceVersion: UNKNOWN,
    labels: merged(there?.labels, metadata.labels),
    annotations: merged(there?.annotations, metadata.annotations),
    owners: ownersAfter(there?.owners ?? [], shape),
    data: dataOf(shape, value),
    ...(minted === undefined ? {} : { minted }),
    ...(hash === undefined ? {} : { hash }),
  };
}

function merged(
  before: Readonly<Record<string, string>> | undefined,
  changes: Readonly<Record<string, string | null>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries({ ...before, ...changes }).filter((pair): pair is [string, string] => pair[1] !== null),
  );
}
