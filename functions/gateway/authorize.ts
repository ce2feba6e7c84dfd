// May you? The model that is asked for, against the key, its user and its teams, and against what the instance serves.
import type { Failure } from '#core/failure.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Snapshot } from '#core/snapshot.ts';
import type { Caller } from './authenticate.ts';
import { type Candidate, type Terms, termsOf } from './terms.ts';
import type { Chat } from './wire/chat.ts';
import { webSearchRefused } from './wire/unmetered-features.ts';

const made: unique symbol = Symbol('Grant');

/** A caller and a model it may use. Only `authorize` makes one. */
export interface Grant extends Terms {
  readonly [made]: true;
  readonly caller: Caller;
  readonly chat: Chat;
  readonly routing: Snapshot['routing'];
}

export function authorize(caller: Caller, chat: Chat, snapshot: Snapshot): Result<Grant, Failure> {
  const terms = termsOf(caller, chat.model, snapshot);
  if (!terms.ok) return terms;
  const { payers, budgeted } = terms.value;
  const candidates = payable(terms.value.candidates, chat);
  if (candidates.length === 0 && chat.webSearches !== undefined) return err(webSearchRefused(chat.webSearches));
  return ok({ [made]: true, caller, chat, routing: snapshot.routing, candidates, payers, budgeted });
}

/** Entries that name a price for all that is asked of them. */
function payable(candidates: ReadonlyArray<Candidate>, { webSearches }: Chat): ReadonlyArray<Candidate> {
  return webSearches === undefined ? candidates : candidates.filter(({ price }) => price?.webSearch !== undefined);
}
