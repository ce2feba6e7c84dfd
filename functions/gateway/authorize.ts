// May you? The model that is asked for, against the key, its user and its teams, and against what the instance serves.
import type { Failure } from '#core/failure.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Snapshot } from '#core/snapshot.ts';
import type { Caller } from './authenticate.ts';
import type { Chat } from './chat.ts';
import { type Terms, termsOf } from './terms.ts';

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
  const { candidates, payers, budgeted } = terms.value;
  if (budgeted && chat.surcharge !== undefined) return err(chat.surcharge);
  return ok({ [made]: true, caller, chat, routing: snapshot.routing, candidates, payers, budgeted });
}
