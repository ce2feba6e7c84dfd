// Access of a key to a model: who pays, and which entries may serve it. Compiled once for a policy, a snapshot and a model.
import type { Failure } from '#core/failure.ts';
import type { KeyPolicy, ScopePolicy } from '#core/ports/policy.ts';
import type { RateLimit } from '#core/ports/rates.ts';
import { type Price, toPrice } from '#core/price.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Snapshot, SnapshotEntry } from '#core/snapshot.ts';
import type { Caller } from './authenticate.ts';
import { createBoundedMap } from './bounded-map.ts';
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

/** Keys whose accesses are kept. */
const MAX_KEYS = 10_000;

export type AccessMemory = ReturnType<typeof createAccessMemory>;
export const createAccessMemory = () => createBoundedMap<string, Compiled>(MAX_KEYS);

export function createAuthorize(memory = createAccessMemory()): Authorize {
  return function authorize(caller, chat, snapshot) {
    const compiled = compiledOf(caller, snapshot);
    const known = compiled.byModel.get(chat.model);
    const access = known === undefined ? compile(caller, chat.model, snapshot) : ok(known);
    if (!access.ok) return access;
    // Only of models that are served, so that there are few.
    if (known === undefined) compiled.byModel.set(chat.model, access.value);
    const { payers } = access.value;
    const candidates = payable(access.value.candidates, chat);
    if (candidates.length === 0 && chat.webSearches !== undefined) return err(webSearchRefused(chat.webSearches));
    return ok({ [made]: true, caller, chat, routing: snapshot.routing, candidates, payers });
  };

  function compiledOf({ key }: Caller, snapshot: Snapshot): Compiled {
    const known = memory.get(key.scopeId);
    if (known?.policy === key && known.snapshot === snapshot) return known;
    const compiled = { policy: key, snapshot, byModel: new Map<string, Access>() };
    memory.set(key.scopeId, compiled);
    return compiled;
  }
}

/** The model names that this caller may use, each once, in the order of the instance. */
export function modelsOf({ scopes }: Caller, snapshot: Snapshot): ReadonlyArray<string> {
  const names = new Set(snapshot.models.map((entry) => entry.modelName));
  return [...names].filter((name) => scopes.every((scope) => admits(scope, name)));
}

function compile({ key, scopes }: Caller, model: string, snapshot: Snapshot): Result<Access, Failure> {
  const denier = scopes.find((scope) => !admits(scope, model));
  if (denier !== undefined) return err({ code: 'model_access_denied', model, kind: denier.kind });
  const entries = snapshot.models.filter((entry) => entry.modelName === model);
  if (entries.length === 0) return err({ code: 'model_not_found', model });
  // An entry without a price is never tried: it would be free.
  const candidates = entries.flatMap(toCandidate);
  if (candidates.length === 0) return err({ code: 'model_not_priced', model });
  const own = key.modelScopes?.find((scope) => scope.name === model);
  return ok({ candidates, payers: own === undefined ? scopes : [...scopes, own] });
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
