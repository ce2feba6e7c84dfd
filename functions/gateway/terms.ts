// What is the same for every request of one key for one model? Worked out once for each policy that was read and each snapshot.
import type { Failure } from '#core/failure.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { type Price, toPrice } from '#core/price.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Snapshot, SnapshotEntry } from '#core/snapshot.ts';
import type { Caller } from './authenticate.ts';

/** A model entry that may serve the request. `price` is absent only where nobody has a budget. */
export interface Candidate {
  readonly entry: SnapshotEntry;
  readonly price: Price | undefined;
}

export interface Terms {
  readonly candidates: ReadonlyArray<Candidate>;
  /** The key's own policy, every scope it is charged to, and the key's budget for the model if it has one. */
  readonly payers: ReadonlyArray<ScopePolicy>;
  /** Whether any of them has a limit that money must stay under. */
  readonly budgeted: boolean;
}

/** By model name. Only of models that are served, so that there are few. */
type Known = Map<string, Terms>;

/** A refreshed policy is another caller, a changed instance another snapshot: nothing here grows stale. */
const known = new WeakMap<Snapshot, WeakMap<Caller, Known>>();
const candidates = new WeakMap<SnapshotEntry, Candidate>();

export function termsOf(caller: Caller, model: string, snapshot: Snapshot): Result<Terms, Failure> {
  const before = known.get(snapshot)?.get(caller)?.get(model);
  if (before !== undefined) return ok(before);
  const terms = readTerms(caller, model, snapshot);
  if (terms.ok) keep(caller, model, snapshot, terms.value);
  return terms;
}

function readTerms(caller: Caller, model: string, snapshot: Snapshot): Result<Terms, Failure> {
  const denier = scopesOf(caller).find((scope) => !admits(scope, model));
  if (denier !== undefined) return err({ code: 'model_access_denied', model, kind: denier.kind });
  const served = snapshot.models.filter((entry) => entry.modelName === model).map(candidateOf);
  if (served.length === 0) return err({ code: 'model_not_found', model });
  const payers = payersOf(caller, model);
  const budgeted = payers.some((scope) => scope.budget !== undefined);
  // On a budgeted key an entry without a price is never tried: it would be free.
  const priced = budgeted ? served.filter(({ price }) => price !== undefined) : served;
  return priced.length === 0 ? err({ code: 'model_not_priced', model }) : ok({ candidates: priced, payers, budgeted });
}

function keep(caller: Caller, model: string, snapshot: Snapshot, terms: Terms): void {
  const callers = known.get(snapshot) ?? new WeakMap<Caller, Known>();
  const models: Known = callers.get(caller) ?? new Map();
  known.set(snapshot, callers.set(caller, models.set(model, terms)));
}

function candidateOf(entry: SnapshotEntry): Candidate {
  const before = candidates.get(entry);
  if (before !== undefined) return before;
  const candidate = { entry, price: toPrice(entry.price, entry.toolCosts) };
  candidates.set(entry, candidate);
  return candidate;
}

/** The model names that this caller may use, each once, in the order of the instance. */
export function modelsOf(caller: Caller, snapshot: Snapshot): ReadonlyArray<string> {
  const names = new Set(snapshot.models.map((entry) => entry.modelName));
  return [...names].filter((name) => scopesOf(caller).every((scope) => admits(scope, name)));
}

/** The key's own policy and every scope it is charged to, each once. */
export function scopesOf(caller: Caller): ReadonlyArray<ScopePolicy> {
  const others = caller.scopes.filter((scope) => scope.scopeId !== caller.key.scopeId);
  return [caller.key, ...others];
}

function payersOf(caller: Caller, model: string): ReadonlyArray<ScopePolicy> {
  const own = caller.key.modelScopes?.find((scope) => scope.name === model);
  return own === undefined ? scopesOf(caller) : [...scopesOf(caller), own];
}

function admits(scope: ScopePolicy, model: string): boolean {
  return scope.models.length === 0 || scope.models.includes(model);
}
