// May a request go on to another model entry, because the one before failed? That one must have room too (decision: rate limits).
import type { HoldRefusal } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { RateLimit } from '../ports/rates.ts';
import { err, ok, type Result } from '../result.ts';
import type { Batch } from './batch.ts';
import type { Lives } from './lives.ts';
import { within } from './within.ts';

export interface MoveDependencies {
  readonly lives: Lives;
  readonly batch: Batch;
  readonly timer: Timer;
}

const PATIENCE: Millis = 1800;

export function createMove({ lives, batch, timer }: MoveDependencies) {
  return async function move(id: string, to: RateLimit | undefined): Promise<Result<void, HoldRefusal>> {
    const live = lives.get(id);
    if (live?.tokens === undefined) return ok(undefined);
    const refused = to === undefined && live.entry === undefined ? ok(undefined) : await ask(id, live.tokens, to);
    if (refused.ok) live.entry = to;
    return refused;
  };

  async function ask(id: string, tokens: number, to: RateLimit | undefined): Promise<Result<void, HoldRefusal>> {
    try {
      const answer = await within(timer, PATIENCE, 'the store', batch.move({ id, tokens, to }));
      if (answer === undefined) return ok(undefined);
      return err({ reason: 'limited', ...answer, limit: to?.[answer.rate] ?? 0, rates: {} });
    } catch (error) {
      return err({ reason: 'unavailable', why: error instanceof Error ? error.message : String(error) });
    }
  }
}
