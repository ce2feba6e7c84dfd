// Moves: a request falls back to another model entry, if that entry's rate allows it (decision 0012).
import type { HoldRefusal } from '../ports/ledger.ts';
import type { RateLimit } from '../ports/rates.ts';
import { reasonOf } from '../reason.ts';
import { err, ok, type Result } from '../result.ts';
import type { Batch } from './batch.ts';
import type { LiveHolds } from './live-holds.ts';
import { openRequestDeadline, type RequestDeadlineDependencies, type Watch, withDeadline } from './request-deadline.ts';

export interface MoveDependencies extends RequestDeadlineDependencies {
  readonly liveHolds: LiveHolds;
  readonly batch: Batch;
  readonly watch: Watch;
}

export function createMove(deps: MoveDependencies) {
  const { liveHolds, batch, watch } = deps;

  return async function move(id: string, to: RateLimit | undefined): Promise<Result<void, HoldRefusal>> {
    const live = liveHolds.get(id);
    if (live?.tokens === undefined) return ok(undefined);
    const refused = to === undefined && live.entry === undefined ? ok(undefined) : await ask(id, live.tokens, to);
    if (refused.ok) live.entry = to;
    return refused;
  };

  async function ask(id: string, tokens: number, to: RateLimit | undefined): Promise<Result<void, HoldRefusal>> {
    try {
      const answer = await withDeadline(watch, openRequestDeadline(deps), batch.move({ id, tokens, to }));
      if (answer === undefined) return ok(undefined);
      return err({ reason: 'limited', ...answer, limit: to?.[answer.rate] ?? 0, rates: {} });
    } catch (error) {
      return err({ reason: 'unavailable', why: reasonOf(error) });
    }
  }
}
