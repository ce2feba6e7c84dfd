// The script's reply to a call: settlements and holds as one text each (script-settlements.ts, script-holds.ts).
import type { RateReply } from '#core/ports/rates.ts';
import type { Expired, HoldAnswer, ReleaseAnswer, SettleAnswer, StoreCall, StoreReply } from '#core/ports/store.ts';
import { toNote } from './note-text.ts';
import { toMove, toRateReplies, toRefusal } from './rates.ts';
import { listOf, textOf } from './texts.ts';

export function toReply(reply: ReadonlyArray<unknown>, { holds: asked }: StoreCall): StoreReply {
  const [outcome, now, calls, settles, releases, holds, expired, replies, moves] = reply;
  if (outcome !== 'done') throw new Error('unexpected reply of the store');
  const rates = toRateReplies(listOf(replies));
  return {
    outcome: 'done',
    now: Number(textOf(now)),
    calls: Number(textOf(calls)),
    settles: answersIn(settles).map(toSettle),
    releases: listOf(releases).map((answer) => toRelease(textOf(answer))),
    holds: answersIn(holds).map((answer, at) => toHold(answer, asked[at]?.amount, rates.get(asked[at]?.id ?? ''))),
    moves: listOf(moves).map((answer) => toMove(listOf(answer).map(textOf))),
    expired: listOf(expired).map((one) => toExpired(listOf(one).map(textOf))),
  };
}

function answersIn(text: unknown): string[] {
  const answers = textOf(text);
  return answers === '' ? [] : answers.split(',');
}

const SETTLED: SettleAnswer & ReleaseAnswer = { outcome: 'settled' };

function toSettle(answer: string): SettleAnswer {
  if (answer === 's') return SETTLED;
  const rest = answer.slice(1);
  switch (answer[0]) {
    case 'r':
      return { outcome: 'released' };
    case 'u':
      return { outcome: 'unknown' };
    case 'x':
      return { outcome: 'expired', charged: BigInt(rest) };
    case 'a':
      return { outcome: 'absent', counters: rest.split(' ').map(Number) };
    default:
      throw new Error(`the store answered a settlement with "${answer}"`);
  }
}

function toRelease(answer: string): ReleaseAnswer {
  if (answer === 's') return SETTLED;
  if (answer === 'r') return { outcome: 'released' };
  if (answer[0] === 'x') return { outcome: 'expired', charged: BigInt(answer.slice(1)) };
  throw new Error(`the store answered a release with "${answer}"`);
}

function toHold(answer: string, asked: bigint | undefined, rates: RateReply | undefined): HoldAnswer {
  const left = rates === undefined ? {} : { rates };
  const [first = '', second = '', third = ''] = answer.slice(1).split(' ');
  switch (answer[0]) {
    case 'h':
      // No amount means the whole one.
      return { outcome: 'held', amount: first === '' && asked !== undefined ? asked : BigInt(first), ...left };
    case 'e':
      return { outcome: 'exceeded', counter: Number(first), spent: BigInt(second), ...left };
    case 't':
      return { outcome: 'limited', ...toRefusal([first, second, third]), rates: rates ?? { left: [] } };
    case 'b':
      return { outcome: 'busy', counter: Number(first), ...left };
    case 'a':
      return { outcome: 'absent', counters: answer.slice(1).split(' ').map(Number) };
    case 'w':
      return { outcome: 'window' };
    case 'l':
      return { outcome: 'late' };
    default:
      throw new Error(`the store answered a hold with "${answer}"`);
  }
}

const toExpired = ([id, charged, names, note]: ReadonlyArray<string>): Expired => ({
  ...{ id: textOf(id), charged: BigInt(textOf(charged)) },
  note: toNote(textOf(names), textOf(note)),
});
