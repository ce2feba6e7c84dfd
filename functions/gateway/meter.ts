// What has this reply cost? Counted while it streams, decided when it ends (LEDGER 9 and 10).
import type { Settlement } from '#core/ports/ledger.ts';
import type { Nano } from '#core/ports/money.ts';
import { costOf, MOST_COST } from '#core/price.ts';
import { NO_TOKENS, toTokens, type Usage } from '#core/usage.ts';
import { estimateOutput } from './measure.ts';
import type { Reservation } from './reserve.ts';
import type { Target } from './route.ts';
import type { Piece, Reply } from './wire/dialect.ts';

export interface Meter {
  /** Whether this piece would be beyond what the hold surely pays for. Asked before `count`. */
  exceeds(piece: Piece): boolean;
  count(piece: Piece): void;
  /** What is to be charged if nothing more comes. */
  settlement(): Settlement;
  /** Every answer that began has ended, or the closing count has come: whatever comes now is not content. */
  readonly finished: boolean;
  /** Answers that began and have not ended. */
  readonly open: ReadonlyArray<number>;
  readonly counted: boolean;
  readonly frame: Readonly<Record<string, unknown>>;
}

export function createMeter(reservation: Reservation, target: Target): Meter {
  const choices = new Map<number, boolean>();
  let frame: Piece['frame'];
  let deltas = 0;
  let bytesSaid = 0;
  let usage: Usage | undefined;
  let prompt: Usage | undefined;
  let concluded = false;
  /** Content has come since the last count. */
  let isBehind = false;

  return {
    exceeds: (piece) => {
      const { cutAt } = target.limit;
      return cutAt !== undefined && piece.deltas > 0 && atLeast(piece) > cutAt;
    },
    count: (piece) => {
      deltas += piece.deltas;
      bytesSaid += piece.bytesSaid;
      usage = piece.usage ?? usage;
      isBehind = piece.usage === undefined && (isBehind || piece.deltas > 0);
      prompt = piece.prompt ?? prompt;
      concluded = piece.usageOnly || (concluded && piece.deltas === 0);
      frame ??= piece.frame;
      for (const { index, finished } of piece.choices) {
        const known = choices.get(index);
        if (known === undefined || finished) choices.set(index, finished);
      }
    },
    settlement: () => {
      const output = Math.max(deltas, estimateOutput(bytesSaid));
      if (usage !== undefined && !countsAll(usage)) return settlementAbove(reservation, target, usage, output);
      return settlementOf(reservation, target, usage, prompt === undefined ? { output } : { ...prompt, output });
    },
    get finished() {
      return isFinished();
    },
    get open() {
      return [...choices].filter(([, finished]) => !finished).map(([index]) => index);
    },
    get counted() {
      return usage !== undefined && countsAll(usage);
    },
    get frame() {
      return frame?.() ?? {};
    },
  };

  function isFinished(): boolean {
    return concluded || (choices.size > 0 && [...choices.values()].every(Boolean));
  }

  /** A count that came with the first words says nothing of the others; nor does one that stays zero until the end. */
  function countsAll({ output }: Usage): boolean {
    return output >= deltas || (!isBehind && (output > 0 || isFinished()));
  }

  /** A lower bound of what was produced, this piece included: a delta is at least a token, unless the provider has counted. */
  function atLeast(piece: Piece): number {
    return piece.usage?.output ?? Math.max(deltas + piece.deltas, usage?.output ?? 0);
  }
}

/** What a whole reply is charged. */
export function settlementOfReply(reservation: Reservation, target: Target, reply: Reply): Settlement {
  const { usage, bytesSaid } = reply;
  const estimated = usage === undefined ? { output: Math.max(1, estimateOutput(bytesSaid())) } : {};
  return settlementOf(reservation, target, usage, estimated);
}

/** What is charged for a prompt that was sent and whose answer nobody waited for. */
export function settlementOfPrompt(reservation: Reservation, target: Target): Settlement {
  return settlementOf(reservation, target, undefined, { output: 0 });
}

/** A count of the prompt, and an estimate of an answer that was not counted to its end: at most the hold, unless the count is more. */
function settlementAbove(reservation: Reservation, target: Target, counted: Usage, output: number): Settlement {
  const least = settlementOf(reservation, target, counted, {});
  const estimate = settlementOf(reservation, target, undefined, { ...counted, output });
  return estimate.cost >= least.cost ? estimate : least;
}

function settlementOf(
  { grant, hold }: Reservation,
  { entry, price, limit }: Target,
  counted: Usage | undefined,
  estimated: Partial<Usage>,
): Settlement {
  const usage: Usage = counted ?? { ...NO_TOKENS, input: grant.chat.input.estimate, ...estimated };
  const cost = price === undefined ? 0n : costOf(usage, price);
  // Its words were longer than is usual, or the provider went beyond the limit: nobody is told of more tokens than were allowed.
  const told = counted ?? { ...usage, output: Math.min(usage.output, limit.most * grant.chat.n) };
  return {
    cost: atMost(cost, counted === undefined ? hold.amount : MOST_COST),
    tokens: toTokens(told),
    model: grant.chat.model,
    identifier: entry.identifier,
    estimated: counted === undefined,
  };
}

function atMost(cost: Nano, most: Nano): Nano {
  if (cost < most) return cost;
  return most;
}
