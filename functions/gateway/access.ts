// Access of a key to a model: who pays, and which entries may serve it. Compiled once for a policy, a snapshot and a model.
import type { Failure } from '#core/failure.ts';
import type { KeyPolicy, ScopePolicy } from '#core/ports/policy.ts';
import type { RateLimit } from '#core/ports/rates.ts';
import { type Price, toPrice } from '#core/price.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Snapshot, SnapshotEntry } from '#core/snapshot.ts';
import type { Caller } from './authenticate.ts';
import { type BoundedMap, createBoundedMap } from './bounded-map.ts';
import type { Chat } from './wire/chat.ts';
import { webSearchRefused } from './wire/unmetered-features.ts';

const made: unique symbol = Symbol('Grant');

/** A model entry that may serve the request. */
export interface Candidate {
  readonly entry: SnapshotEntry;
  readonly price: Price;
  /** Requests and tokens per minute that the entry takes; undefined: as many as come. */
  readonly rate: RateLimit | undefined;
}

export interface Access {
  readonly candidates: ReadonlyArray<Candidate>;
  /** The key, every scope it is charged to, and the key's budget for the model if it has one. */
  readonly payers: ReadonlyArray<ScopePolicy>;
}

/** A caller and a model it may use. Only `authorize` makes one. */
export interface Grant extends Access {
  readonly [made]: true;
  readonly caller: Caller;
  readonly chat: Chat;
  readonly routing: Snapshot['routing'];
}

export type Authorize = (caller: Caller, chat: Chat, snapshot: Snapshot) => Result<Grant, Failure>;

/** The accesses of a key: those of its present policy to the models of the present snapshot. */
interface Compiled {
  readonly policy: KeyPolicy;
  readonly snapshot: Snapshot;
  readonly byModel: Map<string, Access>;
}

/** The entries of the present snapshot by model name: those with a price. */
interface Served {
  readonly snapshot: Snapshot;
  readonly byModel: ReadonlyMap<string, ReadonlyArray<Candidate>>;
}

export interface AccessMemory {
  readonly byKey: BoundedMap<string, Compiled>;
  served: Served | undefined;
}

/** Keys whose accesses are kept. */
const MAX_KEYS = 10_000;

export function createAccessMemory(): AccessMemory {
  return { byKey: createBoundedMap(MAX_KEYS), served: undefined };
}

export function createAuthorize(memory = createAccessMemory()): Authorize {
  return function authorize(caller, chat, snapshot) {
    const compiled = compiledOf(caller, snapshot);
    const known = compiled.byModel.get(chat.model);
    const access = known === undefined ? compile(caller, chat.model, servedBy(snapshot)) : ok(known);
    if (!access.ok) return access;
    // Only of models that are served, so that there are few.
    if (known === undefined) compiled.byModel.set(chat.model, access.value);
    const { payers } = access.value;
    const candidates = payable(access.value.candidates, chat);
    if (candidates.length === 0 && chat.webSearches !== undefined) return err(webSearchRefused(chat.webSearches));
    return ok({ [made]: true, caller, chat, routing: snapshot.routing, candidates, payers });
  };

  function compiledOf({ key }: Caller, snapshot: Snapshot): Compiled {
    const known = memory.byKey.get(key.scopeId);
    if (known?.policy === key && known.snapshot === snapshot) return known;
    const compiled = { policy: key, snapshot, byModel: new Map<string, Access>() };
    memory.byKey.set(key.scopeId, compiled);
    return compiled;
  }

  function servedBy(snapshot: Snapshot): Served {
    if (memory.served?.snapshot !== snapshot) memory.served = { snapshot, byModel: candidatesOf(snapshot) };
    return memory.served;
  }
}

/** The model names that this caller may use, each once, in the order of the instance. */
export function modelsOf({ scopes }: Caller, snapshot: Snapshot): ReadonlyArray<string> {
  const names = new Set(snapshot.models.map((entry) => entry.modelName));
  return [...names].filter((name) => scopes.every((scope) => admits(scope, name)));
}

function compile({ key, scopes }: Caller, model: string, { byModel }: Served): Result<Access, Failure> {
  const denier = scopes.find((scope) => !admits(scope, model));
  if (denier !== undefined) return err({ code: 'model_access_denied', model, kind: denier.kind });
  const candidates = byModel.get(model);
  if (candidates === undefined) return err({ code: 'model_not_found', model });
  if (candidates.length === 0) return err({ code: 'model_not_priced', model });
  const own = key.modelScopes?.find((scope) => scope.name === model);
  return ok({ candidates, payers: own === undefined ? scopes : [...scopes, own] });
}

/** An entry without a price is none: it would be free. */
function candidatesOf({ models }: Snapshot): ReadonlyMap<string, ReadonlyArray<Candidate>> {
  const byModel = Map.groupBy(models, ({ modelName }) => modelName);
  return new Map([...byModel].map(([name, entries]) => [name, entries.flatMap(toCandidate)]));
}

function toCandidate(entry: SnapshotEntry): ReadonlyArray<Candidate> {
  const price = toPrice(entry.price, entry.toolCosts);
  return price === undefined ? [] : [{ entry, price, rate: rateOf(entry) }];
}

function rateOf({ identifier, rpm, tpm }: SnapshotEntry): RateLimit | undefined {
  if (rpm === undefined && tpm === undefined) return undefined;
  return {
    id: `entry ${identifier}`,
    ...(rpm === undefined ? {} : { requests: rpm }),
    ...(tpm === undefined ? {} : { tokens: tpm }),
  };
}

/** Entries that name a price for all that is asked of them. */
function payable(candidates: ReadonlyArray<Candidate>, { webSearches }: Chat): ReadonlyArray<Candidate> {
  return webSearches === undefined ? candidates : candidates.filter(({ price }) => price.webSearch !== undefined);
}

function admits(scope: ScopePolicy, model: string): boolean {
  return scope.models.length === 0 || scope.models.includes(model);
}
