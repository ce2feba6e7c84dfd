// What do the checks read of a spec, however broken the rest of it is?
// An update may leave an old mistake where it was, so a check meets specs that the schema refuses: what has the wrong shape reads as absent.
// Read by hand: every check of every review does it, and a schema library takes thirty times as long.
import { isMap, type Json } from '#crds/shapes.ts';

export interface SecretRefView {
  readonly nameRef: string | undefined;
  readonly keys: Readonly<Record<string, string>>;
}

export interface ModelEntryView {
  readonly modelName?: string | undefined;
  readonly identifier?: string | undefined;
  readonly modelCredentials?: SecretRefView | undefined;
  readonly gatewayParams?:
    | {
        readonly model?: string | undefined;
        readonly customLLMProvider?: string | undefined;
        readonly apiBase?: string | undefined;
        readonly inputCostPerMillionTokens?: string | undefined;
        readonly outputCostPerMillionTokens?: string | undefined;
        readonly cachedInputCostPerMillionTokens?: string | undefined;
        readonly cacheWriteCostPerMillionTokens?: string | undefined;
      }
    | undefined;
}

interface NamedView {
  readonly name: string | undefined;
}

/** What keys, users and teams have in common. */
export interface MemberView {
  readonly connectionRef:
    | {
        readonly instanceRef: { readonly name: string | undefined; readonly namespace: string | undefined } | undefined;
      }
    | undefined;
  readonly models: ReadonlyArray<string | undefined>;
  readonly maxBudget: string | undefined;
}

/** How a kind of spec is read, and what was read of a spec for as long as the spec lives: every check of a chain asks again, and nothing changes a spec in place. */
export interface View<T> {
  readonly read: (spec: Json) => T;
  readonly known: WeakMap<object, T>;
}

const view = <T>(read: (spec: Json) => T): View<T> => ({ read, known: new WeakMap() });

export const InstanceView = view((spec) => ({
  databaseSecretRef: secretRef(spec.databaseSecretRef),
  redisSecretRef: secretRef(spec.redisSecretRef),
  models: listOf(spec.models, modelEntry),
  env: isMap(spec.workload) ? listOf(spec.workload.env, named) : [],
  paused: spec.paused === true,
}));

export const KeyView = view((spec) => ({
  ...member(spec),
  keyAlias: text(spec.keyAlias),
  budgetDuration: text(spec.budgetDuration),
  budgetWindow: text(spec.budgetWindow),
  modelMaxBudget: isMap(spec.modelMaxBudget) ? mapOf(spec.modelMaxBudget, budget) : {},
  userRef: isMap(spec.userRef) ? named(spec.userRef) : undefined,
  teamRef: isMap(spec.teamRef) ? named(spec.teamRef) : undefined,
  secretTemplate: isMap(spec.secretTemplate) ? secretTemplate(spec.secretTemplate) : undefined,
}));

export const UserView = view((spec) => ({
  ...member(spec),
  userEmail: text(spec.userEmail),
  autoCreateKey: spec.autoCreateKey === true,
  keyAlias: text(spec.keyAlias),
  teamRefs: listOf(spec.teamRefs, named),
}));

export const TeamView = view((spec) => ({
  ...member(spec),
  teamAlias: text(spec.teamAlias),
  members: listOf(spec.members, named),
}));

/** What an instance serves: the `modelName`s of its entries. */
export const servedBy = (spec: unknown): ReadonlySet<string> =>
  new Set(toView(InstanceView, spec).models.flatMap(({ modelName }) => (modelName === undefined ? [] : [modelName])));

/** Any JSON as a view: never fails. */
export function toView<T>({ read, known }: View<T>, spec: unknown): T {
  if (!isMap(spec)) return read({});
  const before = known.get(spec);
  if (before !== undefined) return before;
  const made = read(spec);
  known.set(spec, made);
  return made;
}

function member({ connectionRef, models, maxBudget }: Json): MemberView {
  const instance = isMap(connectionRef) ? connectionRef.instanceRef : undefined;
  return {
    connectionRef: isMap(connectionRef)
      ? {
          instanceRef: isMap(instance) ? { name: text(instance.name), namespace: text(instance.namespace) } : undefined,
        }
      : undefined,
    models: listOf(models, text),
    maxBudget: text(maxBudget),
  };
}

const secretTemplate = (template: Json) => ({
  ...named(template),
  entries: isMap(template.entries) ? mapOf(template.entries, text) : {},
});

function modelEntry(entry: unknown): ModelEntryView {
  if (!isMap(entry)) return {};
  const { gatewayParams: params } = entry;
  return {
    modelName: text(entry.modelName),
    identifier: text(entry.identifier),
    modelCredentials: secretRef(entry.modelCredentials),
    gatewayParams: isMap(params)
      ? {
          model: text(params.model),
          customLLMProvider: text(params.customLLMProvider),
          apiBase: text(params.apiBase),
          inputCostPerMillionTokens: text(params.inputCostPerMillionTokens),
          outputCostPerMillionTokens: text(params.outputCostPerMillionTokens),
          cachedInputCostPerMillionTokens: text(params.cachedInputCostPerMillionTokens),
          cacheWriteCostPerMillionTokens: text(params.cacheWriteCostPerMillionTokens),
        }
      : undefined,
  };
}

function secretRef(ref: unknown): SecretRefView | undefined {
  return isMap(ref) ? { nameRef: text(ref.nameRef), keys: isTexts(ref.keys) ? ref.keys : {} } : undefined;
}

function isTexts(map: unknown): map is Readonly<Record<string, string>> {
  if (!isMap(map)) return false;
  for (const name in map) if (typeof map[name] !== 'string') return false;
  return true;
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const named = (ref: unknown): NamedView => ({ name: isMap(ref) ? text(ref.name) : undefined });

const listOf = <T>(list: unknown, read: (entry: unknown) => T): ReadonlyArray<T> =>
  Array.isArray(list) ? list.map((entry) => read(entry)) : [];

const mapOf = <T>(map: Json, read: (value: unknown) => T): Readonly<Record<string, T>> =>
  Object.fromEntries(Object.entries(map).map(([name, value]) => [name, read(value)]));

const budget = (value: unknown) => ({
  maxBudget: isMap(value) ? text(value.maxBudget) : undefined,
  budgetDuration: isMap(value) ? text(value.budgetDuration) : undefined,
});
