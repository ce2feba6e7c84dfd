// What does doing an action need, and how did it end?
import type { Millis } from '#core/ports/money.ts';
import type { ActionName, ActionOf } from '../action.ts';
import type { ReconcileDeps } from '../deps.ts';
import type { Fact } from '../fact.ts';
import type { Links, Memory } from '../observe/links.ts';
import type { World } from '../world.ts';

export interface Hands {
  readonly deps: ReconcileDeps;
  readonly memory: Memory;
  readonly now: Millis;
  /** As it is after the actions before this one. */
  readonly world: World;
  readonly links: Links;
}

export type Outcome =
  | { readonly ended: 'done'; readonly facts: ReadonlyArray<Fact> }
  /** The world was not as planned: it is planned anew with what was found. */
  | { readonly ended: 'stale'; readonly facts: ReadonlyArray<Fact> }
  | { readonly ended: 'failed'; readonly why: string; readonly facts?: ReadonlyArray<Fact> }
  /** No failure, and nothing to try again: its namespace is being deleted. */
  | { readonly ended: 'moot'; readonly why: string };

export type Performer<Name extends ActionName> = (action: ActionOf<Name>, hands: Hands) => Promise<Outcome>;

export const done = (...facts: Fact[]): Outcome => ({ ended: 'done', facts });
export const stale = (...facts: Fact[]): Outcome => ({ ended: 'stale', facts });
export const failed = (why: string): Outcome => ({ ended: 'failed', why });
