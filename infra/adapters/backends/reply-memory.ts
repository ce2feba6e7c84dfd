// The memory for replies of databases and counter stores, in a process that uses those of many owners.

const MIB = 1024 * 1024;
/** The maximum reply to a process that uses the stores of many owners. */
export const MAX_REPLY = MIB;
/** The maximum reply to a gateway, which uses one store: the figures of an account with very many counters. */
export const MAX_OWN_REPLY = 64 * MIB;

/** The memory of one piece of work: its replies count in it until the work ends. After that no reply is awaited. */
export interface WorkMemory {
  /**
   * Counts these bytes for this holder, in place of its previous bytes. Throws if the share may not have them: then
   * `signal` aborts. It may also abort later, because another share needs memory.
   */
  take(holder: object, bytes: number): void;
  /** Aborts, with an AnswerRefused as its reason, when the work has ended or its share was taken away. */
  readonly signal: AbortSignal;
}

export interface MemoryBudget {
  /** `entitled`: bytes that the share keeps in any case, by the size of the work. */
  workMemory(entitled: number): WorkMemory & { end(why?: string): void };
}

interface ShareState {
  readonly entitled: number;
  held: number;
  readonly controller: AbortController;
}

/**
 * A server sent more than a reply may have, or more than there is memory for. The message continues a sentence that
 * begins with the name of the server.
 */
export class AnswerRefused extends Error {
  override readonly name = 'AnswerRefused';
}

const TOO_MUCH = 'answers with more than there is memory for: check that the Secret names the right server';
const ENDED = 'was not asked to the end: the work that asked has ended';

/**
 * All shares together have at most `maxExcess` bytes beyond what each is entitled to. If a share needs more, the share
 * with the largest excess ends. So servers that reply without end take no memory from the work of others.
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
    workMemory(entitled) {
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
 * The maximum memory of a parsed JSON text in addition to the text: counted by brackets, braces and commas outside of
 * strings.
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
