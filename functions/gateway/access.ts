// Access of a key to a model: who pays, and which entries may serve it. Compiled once for a policy, a snapshot and a model.
import type { Failure } from '#core/failure.ts';
import type { KeyPolicy, ScopePolicy } from '#core/ports/policy.ts';
import type { RateLimit } from '#core/ports/rates.ts';
import { type Price, toPrice } from '#core/price.ts';
import { type Provider, providerOf } from '#core/providers.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Snapshot, SnapshotEntry } from '#core/snapshot.ts';
import type { Caller } from './authenticate.ts';
import type { Chat } from './wire/chat.ts';
import { webSearchRefused } from './wire/unmetered-features.ts';

const made: unique symbol = Symbol('Grant');

/** A model entry that may serve the request. */
export interface Candidate {
  readonly entry: SnapshotEntry;
  readonly provider: Provider;
  readonly price: Price;
  /** Requests and tokens per minute that the entry takes; undefined: as many as come. */
  readonly rate: RateLimit | undefined;
}

export interface Access {
  readonly candidates: ReadonlyArray<Candidate>;
  /** Whether one of the entries has a rate. */
  readonly isLimited: boolean;
  /** The key, every scope it is charged to, and the key's further budgets: other windows, and the model's. */
  readonly payers: ReadonlyArray<ScopePolicy>;
}

/** A caller and a model it may use. Only `authorize` makes one. */
export interface Grant extends Access {
  readonly [made]: true;
  readonly caller: Caller;
  readonly chat: Chat;
  readonly routing: Snapshot['routing'];
}

/** Model entries of one snapshot that have a price, and the accesses to them by key, kept as long as the key's present policy. */
interface Served {
  readonly byModel: ReadonlyMap<string, ReadonlyArray<Candidate>>;
  readonly byKey: WeakMap<KeyPolicy, Map<string, Access>>;
}

export type AccessMemory = WeakMap<Snapshot, Served>;

export function createAuthorize(memory: AccessMemory = new WeakMap()) {
  return function authorize(caller: Caller, chat: Chat, snapshot: Snapshot): Result<Grant, Failure> {
    const served = servedBy(snapshot);
    const known = served.byKey.get(caller.key)?.get(chat.model);
    const access = known === undefined ? compile(caller, chat.model, served) : ok(known);
    if (!access.ok) return access;
    const { candidates, isLimited, payers } = access.value;
    const grant: Grant = { [made]: true, caller, chat, routing: snapshot.routing, candidates, isLimited, payers };
    if (chat.webSearches === undefined) return ok(grant);
    const priced = candidates.filter(({ price }) => price.webSearch !== undefined);
    return priced.length === 0 ? err(webSearchRefused(chat.webSearches)) : ok({ ...grant, candidates: priced });
  };

  function servedBy(snapshot: Snapshot): Served {
    const known = memory.get(snapshot);
    if (known !== undefined) return known;
    const served: Served = { byModel: candidatesOf(snapshot), byKey: new WeakMap() };
    memory.set(snapshot, served);
    return served;
  }
}

/** The model names that this caller may use, each once, in the order of the instance. */
export function modelsOf({ scopes }: Caller, snapshot: Snapshot): ReadonlyArray<string> {
  const names = new Set(snapshot.models.map((entry) => entry.modelName));
  return [...names].filter((name) => scopes.every((scope) => admits(scope, name)));
}

function compile({ key, scopes }: Caller, model: string, { byModel, byKey }: Served): Result<Access, Failure> {
  const denier = scopes.find((scope) => !admits(scope, model));
  if (denier !== undefined) return err({ code: 'model_access_denied', model, kind: denier.kind });
  const candidates = byModel.get(model);
  if (candidates === undefined) return err({ code: 'model_not_found', model });
  if (candidates.length === 0) return err({ code: 'model_not_priced', model });
  const own = key.ownScopes?.filter(({ kind, name }) => kind !== 'model' || name === model) ?? [];
  const isLimited = candidates.some(({ rate }) => rate !== undefined);
  const access = { candidates, isLimited, payers: own.length === 0 ? scopes : [...scopes, ...own] };
  // Only accesses to served models are kept, so that there are few.
  const accesses = byKey.get(key) ?? new Map<string, Access>();
  byKey.set(key, accesses.set(model, access));
  return ok(access);
}

/** Candidates by model. An entry without a price is not a candidate: its use would be free. */
function candidatesOf({ models }: Snapshot): ReadonlyMap<string, ReadonlyArray<Candidate>> {
  const byModel = Map.groupBy(models, ({ modelName }) => modelName);
  return new Map([...byModel].map(([name, entries]) => [name, entries.flatMap(toCandidate)]));
}

function toCandidate(entry: SnapshotEntry): ReadonlyArray<Candidate> {
  const price = toPrice(entry.price, entry.toolCosts);
  return price === undefined ? [] : [{ entry, provider: providerOf(entry.provider), price, rate: rateOf(entry) }];
}

function rateOf({ identifier, rpm, tpm }: SnapshotEntry): RateLimit | undefined {
  return rpm === undefined && tpm === undefined ? undefined : { id: `entry ${identifier}`, requests: rpm, tokens: tpm };
}

function admits(scope: ScopePolicy, model: string): boolean {
  return scope.models.length === 0 || scope.models.includes(model);
}
