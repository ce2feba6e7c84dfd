// A case of validation: an object, and the violations that it has.
// Written by hand; crds/test/validate.test.ts, infra/packaging/manifests/test/crds.test.ts (embedded cluster) and
// test/crds/crds.world.test.ts (real API server) agree.
import type { KindName } from '../../kinds/kinds.ts';

export interface Case {
  /** Continues "a VirtualKey …". */
  readonly what: string;
  readonly kind: KindName;
  /** Edits of the good object of the kind: `spec.models.0.weight` → value; undefined removes. */
  readonly edit: Readonly<Record<string, unknown>>;
  /** Edits of the stored object, where the case is an update. */
  readonly stored?: Readonly<Record<string, unknown>>;
  /** Rule and path of every finding; a good object has none. */
  readonly findings: ReadonlyArray<readonly [rule: string, path: string]>;
}

/** The object of a case, and what was stored before where it is an update. */
export function objectsOf(one: Case): { readonly object: Manifest; readonly old: Manifest | undefined } {
  const old = one.stored && edited(good[one.kind], one.stored);
  return { object: edited(good[one.kind], one.edit), old };
}

export interface Manifest {
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

const connectionRef = { instanceRef: { name: 'proxy', namespace: 'ai' } };

/** One good object of each kind, with no field that could be left out. */
export const good: Readonly<Record<KindName, Manifest>> = {
  GatewayInstance: {
    metadata: { name: 'proxy' },
    spec: {
      redisSecretRef: {
        nameRef: 'store',
        keys: { hostSecret: 'host', portSecret: 'port', passwordSecret: 'password' },
      },
      databaseSecretRef: {
        nameRef: 'database',
        keys: { hostSecret: 'host', passwordSecret: 'password', usernameSecret: 'username', dbnameSecret: 'dbname' },
      },
      models: [
        {
          modelName: 'gpt-4o',
          identifier: 'gpt-4o-eu',
          requiresAuth: true,
          modelCredentials: { nameRef: 'openai', keys: { apiKey: 'key', apiBase: 'base' } },
          gatewayParams: { model: 'openai/gpt-4o' },
        },
        {
          modelName: 'gpt-4o',
          identifier: 'local',
          requiresAuth: false,
          gatewayParams: { model: 'vllm/meta/llama-3:8b' },
        },
      ],
    },
  },
  VirtualKey: {
    metadata: { name: 'app' },
    spec: { keyAlias: 'app', maxBudget: '10', budgetDuration: '30d', connectionRef },
  },
  User: { metadata: { name: 'ada' }, spec: { userEmail: 'ada@example.com', connectionRef } },
  Team: { metadata: { name: 'search' }, spec: { teamAlias: 'Search', connectionRef } },
};

/** A copy with the edits made. */
export function edited(manifest: Manifest, edits: Readonly<Record<string, unknown>>): Manifest {
  return Object.entries(edits).reduce<Manifest>(
    (before, [path, value]) => set(before, path.split('.'), value) as Manifest,
    manifest,
  );
}

function set(target: unknown, [step = '', ...rest]: readonly string[], value: unknown): unknown {
  if (Array.isArray(target)) {
    const index = Number(step);
    const entry = rest.length === 0 ? value : set(target[index], rest, value);
    return index < target.length ? target.with(index, entry) : [...target, entry];
  }
  const { [step]: child, ...others } = (target ?? {}) as Readonly<Record<string, unknown>>;
  if (rest.length > 0) return { ...others, [step]: set(child, rest, value) };
  return value === undefined ? others : { ...others, [step]: value };
}

/** A good object. */
export const accept = (kind: KindName, what: string, edit: Case['edit'] = {}, stored?: Case['edit']): Case => ({
  what,
  kind,
  edit,
  findings: [],
  ...(stored !== undefined && { stored }),
});

/** An object with exactly these findings. */
export const refuse = (kind: KindName, what: string, edit: Case['edit'], ...findings: Case['findings']): Case => ({
  what,
  kind,
  edit,
  findings,
});
