// The memory that answers of databases and stores may take in a process that asks those of many owners.

/** One piece of work: what it is answered counts until it ends, and nothing that it asked is waited for after that. */
export interface MemoryShare {
  /**
   * Counts so many bytes for this holder, in place of what was counted for it before. Throws where this share may not
   * have them; then, or later, for the sake of others, `signal` aborts.
   */
  take(holder: object, bytes: number): void;
  /** Aborts, with an AnswerRefused as its reason, when the work has ended or its share was taken away. */
  readonly signal: AbortSignal;
}

export interface MemoryBudget {
  /** `entitled`: bytes that nobody takes away, because the work is as large as that. */
  share(entitled: number): MemoryShare & { end(why?: string): void };
}

interface ShareState {
  readonly entitled: number;
  held: number;
  readonly controller: AbortController;
}

/**
 * A server sent more than it may: more than our own answer can have, or than there is memory for. The message is the
 * rest of a sentence about it.
 */
export class AnswerRefused extends Error {
  override readonly name = 'AnswerRefused';
}

const TOO_MUCH = 'answers with more than there is memory for: check that the Secret names the right server';
const ENDED = 'was not asked to the end: the work that asked has ended';

/**
 * Shares hold together at most so many bytes beyond what each is entitled to. Beyond that the share with the largest
 * excess ends, whoever asked last: owners of servers that answer without end take nothing from others, however many
 * they are.
 */
export function createMemoryBudget(maxExcess: number): MemoryBudget {
  const shares = new Set<ShareState>();
  const excessOf = ({ held, entitled }: ShareState): number => Math.max(0, held - entitled);
  const takeAway = (): void => {
    const [largest] = [...shares].sort((one, other) => excessOf(other) - excessOf(one));
    if (largest === undefined) return;
    shares.delete(largest);
    largest.controller.abort(new AnswerRefused(TOO_MUCH));
  };
  let excess = 0;
  return {
    share(entitled) {
      const controller = new AbortController();
      const own: ShareState = { entitled, held: 0, controller };
      const holders = new Map<object, number>();
      shares.add(own);
      return {
        signal: controller.signal,
        take(holder, bytes) {
          controller.signal.throwIfAborted();
          const before = excessOf(own);
          own.held += bytes - (holders.get(holder) ?? 0);
          if (bytes === 0) holders.delete(holder);
          else holders.set(holder, bytes);
          excess += excessOf(own) - before;
          if (excess > maxExcess && excessOf(own) > before) {
            takeAway();
            excess = [...shares].reduce((sum, share) => sum + excessOf(share), 0);
          }
          controller.signal.throwIfAborted();
        },
        end(why = ENDED) {
          if (shares.delete(own)) excess -= excessOf(own);
          controller.abort(new AnswerRefused(why));
        },
      };
    },
  };
}

const BRACKET_BYTES = 64;
const COMMA_BYTES = 40;

/**
 * Bytes that the values of a JSON text may take once it is parsed, beside its own: by its brackets, braces and commas
 * outside of texts.
 */
export function jsonBytes(text: string): number {
  let bytes = 0;
  let inText = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) inText = !inText;
    else if (inText) at += code === 0x5c ? 1 : 0;
    else if (code === 0x2c) bytes += COMMA_BYTES;
    else if (code === 0x7b || code === 0x5b) bytes += BRACKET_BYTES;
  }
  return bytes;
}
