// Access of a VirtualKey to a model through one API: its charged scopes, and the model entries that may serve it.
// Compiled once for each policy, snapshot and model.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { toFurtherScope } from '#core/keys/further-budgets.ts';
import { toScopeName } from '#core/keys/scope-name.ts';
import { type Provider, providerOf } from '#core/models/providers.ts';
import type { Snapshot, SnapshotEntry } from '#core/models/snapshot.ts';
import { type Price, toPrice } from '#core/money/price.ts';
import type { KeyPolicy, ScopePolicy } from '#core/ports/policy.ts';
import { perRate, RATE_KINDS, type RateLimit } from '#core/ports/rates.ts';
import { type Api, codecOf } from '../wire/api.ts';
import type { Codec } from '../wire/codec.ts';
import { isOfflineAt, webSearchRefusal } from '../wire/prompt/unmetered-features.ts';
import type { ModelRequest } from '../wire/request.ts';
import type { Caller } from './authenticate.ts';

const ticket: unique symbol = Symbol('Grant');

/** A model entry that may serve the request. */
export interface Candidate {
  readonly entry: SnapshotEntry;
  readonly provider: Provider;
  readonly codec: Codec;
  readonly price: Price;
  /** The limits of the model entry; undefined: unlimited. */
  readonly limits: RateLimit | undefined;
}

export interface Access {
  readonly candidates: ReadonlyArray<Candidate>;
  /** Whether one of the model entries has a rate limit. */
  readonly isLimited: boolean;
  /**
   * The scopes that requests are charged to: the key, its user and teams, and its further budgets (other windows, and
   * this model).
   */
  readonly chargedScopes: ReadonlyArray<ScopePolicy>;
}

/** A caller and a model it may use. Only `authorize` makes one. */
export interface Grant extends Access {
  readonly [ticket]: true;
  readonly caller: Caller;
  readonly request: ModelRequest;
  readonly routing: Snapshot['routing'];
  /** Providers may store what the caller sends. */
  readonly storeResponses: boolean;
}

/**
 * Model entries of one snapshot, and the accesses to them by key. An access is kept as long as the key's current
 * policy.
 */
interface SnapshotModels {
  readonly byModel: ReadonlyMap<string, Model>;
  readonly byKey: WeakMap<KeyPolicy, Map<string, Access>>;
}

/**
 * The model entries of one model. `isServed`: one of them has the route. `candidates`: these also have a price for
 * it.
 */
interface Model {
  readonly isServed: boolean;
  readonly candidates: ReadonlyArray<Candidate>;
}

/** Model entries and accesses by the path of an API. */
export type AccessMemory = Map<string, WeakMap<Snapshot, SnapshotModels>>;

export function createAuthorize(memory: AccessMemory, api: Api) {
  const own = memory.get(api.path) ?? new WeakMap<Snapshot, SnapshotModels>();
  memory.set(api.path, own);

  return function authorize(caller: Caller, request: ModelRequest, snapshot: Snapshot): Result<Grant, Failure> {
    const served = snapshotModelsOf(snapshot);
    const { model, webSearches } = request;
    const known = served.byKey.get(caller.key)?.get(model);
    const access = known === undefined ? compile(caller, { model, path: api.path }, served) : ok(known);
    if (!access.ok) return access;
    const { candidates, isLimited, chargedScopes } = access.value;
    const { routing, storeResponses = false } = snapshot;
    const grant: Grant = {
      [ticket]: true,
      caller,
      request,
      routing,
      storeResponses,
      candidates,
      isLimited,
      chargedScopes,
    };
    if (webSearches === undefined) return ok(grant);
    const priced = candidates.filter(
      ({ price, provider }) => price.webSearch !== undefined || isOfflineAt(provider, webSearches),
    );
    return priced.length === 0 ? err(webSearchRefusal(webSearches)) : ok({ ...grant, candidates: priced });
  };

  function snapshotModelsOf(snapshot: Snapshot): SnapshotModels {
    const known = own.get(snapshot);
    if (known !== undefined) return known;
    const served: SnapshotModels = { byModel: toModels(api, snapshot), byKey: new WeakMap() };
    own.set(snapshot, served);
    return served;
  }
}

/** The model entries of the models that this caller may use, by model name, in the order of the instance. */
export function modelsOf({ scopes }: Caller, { models }: Snapshot): ReadonlyMap<string, ReadonlyArray<SnapshotEntry>> {
  const restrictions = scopes.filter((scope) => scope.models.length > 0).map((scope) => new Set(scope.models));
  const admitted = models.filter(({ modelName }) => restrictions.every((names) => names.has(modelName)));
  return Map.groupBy(admitted, ({ modelName }) => modelName);
}

function compile(
  { key, scopes }: Caller,
  { model, path }: { readonly model: string; readonly path: string },
  { byModel, byKey }: SnapshotModels,
): Result<Access, Failure> {
  const refusingScope = scopes.find((scope) => !admits(scope, model));
  if (refusingScope !== undefined)
    return err({ code: 'model_access_denied', model, ...toScopeName(refusingScope, scopes) });
  const found = byModel.get(model);
  if (found === undefined) return err({ code: 'model_not_found', model });
  const { isServed, candidates } = found;
  if (!isServed) return err({ code: 'route_not_served', model, path });
  if (candidates.length === 0) return err({ code: 'model_not_priced', model });
  const further = key.furtherBudgets?.filter((one) => one.model === undefined || one.model === model) ?? [];
  const own = further.map(toFurtherScope(key));
  const isLimited = candidates.some(({ limits }) => limits !== undefined);
  const access = { candidates, isLimited, chargedScopes: own.length === 0 ? scopes : [...scopes, ...own] };
  // Only accesses to served models are kept, so that there are few.
  const known = byKey.get(key) ?? new Map<string, Access>();
  byKey.set(key, known.set(model, access));
  return ok(access);
}

/**
 * Models by name. A model entry without the route or without a price is no candidate: a request there would fail, or be
 * free.
 */
function toModels(api: Api, { models }: Snapshot): ReadonlyMap<string, Model> {
  const byName = Map.groupBy(models, ({ modelName }) => modelName);
  return new Map([...byName].map(([name, entries]) => [name, toModel(api, entries)]));
}

function toModel(api: Api, entries: ReadonlyArray<SnapshotEntry>): Model {
  const served = entries.flatMap((entry) => {
    const provider = providerOf(entry.provider, entry.model);
    const codec = codecOf(api, provider);
    return codec === undefined ? [] : [{ entry, provider, codec }];
  });
  const candidates = served.flatMap(({ entry, ...servedBy }) => {
    const isHalf = api.hasOutput && entry.price?.output === undefined;
    const price = isHalf ? undefined : toPrice(entry.price, entry.toolCosts);
    return price === undefined ? [] : [{ entry, ...servedBy, price, limits: limitsOf(entry) }];
  });
  return { isServed: served.length > 0, candidates };
}

function limitsOf(entry: SnapshotEntry): RateLimit | undefined {
  const limits = perRate((kind) => {
    const { modelEntryField } = RATE_KINDS[kind];
    return modelEntryField === undefined ? undefined : entry[modelEntryField];
  });
  const isLimited = Object.values(limits).some((limit) => limit !== undefined);
  return isLimited ? { id: `entry ${entry.identifier}`, ...limits } : undefined;
}

function admits(scope: ScopePolicy, model: string): boolean {
  return scope.models.length === 0 || scope.models.includes(model);
}
