// May you? The model that is asked for, against the key, its user and its teams, and against what the instance serves.
import type { Failure } from '#core/failure.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { type Price, toPrice } from '#core/rates.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Snapshot, SnapshotEntry } from '#core/snapshot.ts';
import type { Caller } from './authenticate.ts';
import type { Chat } from './chat.ts';

const made: unique symbol = Symbol('Grant');

/** A model entry that may serve the request. `price` is absent only where nobody has a budget. */
export interface Candidate {
  readonly entry: SnapshotEntry;
  readonly price: Price | undefined;
}

/** A caller and a model it may use. Only `authorize` makes one. */
export interface Grant {
  readonly [made]: true;
  readonly caller: Caller;
  readonly chat: Chat;
  readonly routing: Snapshot['routing'];
  readonly candidates: ReadonlyArray<Candidate>;
  /** Whether any scope of the caller has a limit that money must stay under. */
  readonly budgeted: boolean;
}

/** Nothing in a reply tells what such a service cost, so a budget could not be kept. */
const DEARER: Failure = {
  code: 'invalid_request',
  message: '"service_tier" must be auto, default, flex or on_demand for a key with a budget.',
  param: 'service_tier',
};

export function authorize(caller: Caller, chat: Chat, snapshot: Snapshot): Result<Grant, Failure> {
  const { model } = chat;
  const denier = scopesOf(caller).find((scope) => !admits(scope, model));
  if (denier !== undefined) return err({ code: 'model_access_denied', model, kind: denier.kind });
  const served = snapshot.models.filter((entry) => entry.modelName === model);
  if (served.length === 0) return err({ code: 'model_not_found', model });
  const budgeted = payersOf(caller, model).some((scope) => scope.budget !== undefined);
  if (budgeted && chat.dearer) return err(DEARER);
  const priced = served.map((entry) => ({ entry, price: toPrice(entry.price) }));
  // On a budgeted key an entry without a price is never tried: it would be free.
  const candidates = budgeted ? priced.filter(({ price }) => price !== undefined) : priced;
  if (candidates.length === 0) return err({ code: 'model_not_priced', model });
  return ok({ [made]: true, caller, chat, routing: snapshot.routing, candidates, budgeted });
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

/** Who pays for a request of this model: these, and the key's budget for the model if it has one. */
export function payersOf(caller: Caller, model: string): ReadonlyArray<ScopePolicy> {
  const own = caller.key.modelScopes?.find((scope) => scope.name === model);
  return own === undefined ? scopesOf(caller) : [...scopesOf(caller), own];
}

function admits(scope: ScopePolicy, model: string): boolean {
  return scope.models.length === 0 || scope.models.includes(model);
}
