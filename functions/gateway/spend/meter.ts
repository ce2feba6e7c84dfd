// Meters of streams: the content and counts of a running stream, and its charge so far (LEDGER 10).
import type { Failure } from '#core/failure/failure.ts';
import { laterUsage, type Usage } from '#core/money/usage.ts';
import type { Settlement } from '#core/ports/ledger.ts';
import type { EndWriter, FailedPiece, OutputSize, Piece } from '../wire/codec.ts';
import { webSearchesAt } from '../wire/prompt/unmetered-features.ts';
import { MAX_PARTS } from '../wire/streams/parts.ts';
import { toShownError } from '../wire/streams/provider-error.ts';
import {
  type ChargedCall,
  countWithMedia,
  estimateOutput,
  settlementOf,
  settlementOfPartialCount,
  withFailedCalls,
} from './charge.ts';

/**
 * The maximum bytes of unread pieces, which are read later, and only if that is necessary. The ledger needs the cost
 * every second, so a larger maximum would rarely help.
 */
const MAX_UNREAD = 64 * 1024;
/** The first size of the buffer of unread pieces; it doubles. */
const FIRST_UNREAD = 4 * 1024;
const NO_BYTES = new Uint8Array(0);
/**
 * The approximate tokens that the pages of one search add to a prompt. Providers cut pages, and later rounds read them
 * again.
 */
const PAGE_TOKENS_PER_SEARCH = 30_000;
/** The minimum bytes of a delta: `{"delta":{"images":[1]}}`. */
const MIN_DELTA_BYTES = 24;

/** The content and counts of a stream so far. A class, because each stream has one: methods are shared. */
export class Meter {
  readonly #call: ChargedCall;
  readonly #endWriter: EndWriter;
  /** Unread pieces, joined: separate packets would take several times their bytes. */
  #unread = NO_BYTES;
  #unreadBytes = 0;
  #readEvents: Piece['readEvents'];
  /** Whether each answer has ended, by index. */
  readonly #choices = new Map<number, boolean>();
  #deltas = 0;
  #outputBytes = 0;
  #media = 0;
  #searches = 0;
  #usage: Usage | undefined;
  #prompt: Usage | undefined;
  #hasClosingCount = false;
  /** Content has arrived since the last count. */
  #hasUncountedContent = false;
  /** The last count is of one answer among several. Later counts are too, except one without an answer. */
  #isCountOfOne = false;

  constructor(call: ChargedCall, endWriter: EndWriter) {
    this.#call = call;
    this.#endWriter = endWriter;
  }

  /**
   * Whether the output with this piece may exceed the reservation (unread piece: with one of its events). Called before
   * `count`.
   */
  exceeds(piece: Piece): boolean {
    const { cutAt } = this.#call.target.limit;
    if (cutAt === undefined) return false;
    const isUnread = piece.readEvents !== undefined;
    const unread = (this.#unreadBytes + (isUnread ? piece.bytes.length : 0)) / MIN_DELTA_BYTES;
    const isNear = this.#deltas + unread + piece.deltas > cutAt;
    if (isNear) this.#readAll();
    return isUnread ? isNear : piece.deltas > 0 && this.#minOutputWith(piece) > cutAt;
  }

  count(piece: Piece): void {
    // A count that arrived before content does not include that content: from then on every piece is read when it
    // arrives.
    if (piece.readEvents === undefined) this.#countRead(piece);
    else if (this.#usage !== undefined) for (const event of piece.readEvents(piece.bytes)) this.#countRead(event);
    else this.#keepUnread(piece);
  }

  #countRead(piece: Piece): void {
    this.#size(piece);
    if (piece.usage !== undefined) {
      this.#usage = laterUsage(this.#usage, piece.usage);
      this.#isCountOfOne = this.#countsOneAnswer(piece);
    }
    this.#hasUncountedContent = piece.usage === undefined && (this.#hasUncountedContent || piece.deltas > 0);
    this.#prompt = piece.prompt ?? this.#prompt;
    this.#hasClosingCount = piece.usageOnly || (this.#hasClosingCount && piece.deltas === 0);
  }

  #keepUnread({ bytes, readEvents }: Piece): void {
    const length = this.#unreadBytes + bytes.length;
    if (length > this.#unread.length) {
      const larger = new Uint8Array(Math.max(FIRST_UNREAD, 2 * this.#unread.length, length));
      larger.set(this.#unread.subarray(0, this.#unreadBytes));
      this.#unread = larger;
    }
    this.#unread.set(bytes, this.#unreadBytes);
    this.#unreadBytes = length;
    this.#readEvents = readEvents;
    if (length > MAX_UNREAD) this.#readAll();
  }

  #readAll(): void {
    if (this.#unreadBytes === 0) return;
    const unread = this.#unread.subarray(0, this.#unreadBytes);
    this.#unread = NO_BYTES;
    this.#unreadBytes = 0;
    for (const event of this.#readEvents?.(unread) ?? []) this.#size(event);
  }

  #size(piece: Piece): void {
    this.#deltas += piece.deltas;
    this.#outputBytes += piece.outputBytes;
    this.#media += piece.media;
    this.#searches += piece.searches;
    this.#endWriter.record(piece);
    for (const { index, finished: isFinished } of piece.choices) {
      const known = this.#choices.get(index);
      const isNew = known === undefined && this.#choices.size < MAX_PARTS;
      if (isNew || (known === false && isFinished)) this.#choices.set(index, isFinished);
    }
  }

  /** The charge if nothing more comes. */
  settlement(): Settlement {
    return withFailedCalls(this.#call, this.#settlementOfStream());
  }

  #settlementOfStream(): Settlement {
    const prompt = this.#prompt;
    const usage = this.#usage && countWithMedia(this.#usage, this.#call.target, () => this.#outputSize());
    if (usage !== undefined && this.#countsAll(usage)) {
      return settlementOf(this.#call, usage, {});
    }
    const output = { ...estimateOutput(this.#outputSize(), this.#deltas), ...this.#maxSearchUsage(usage ?? prompt) };
    if (usage !== undefined) return settlementOfPartialCount(this.#call, usage, output);
    return settlementOf(this.#call, undefined, { ...prompt, ...output });
  }

  /** The maximum of searches that were not counted to their end, and of the prompt with their pages. */
  #maxSearchUsage(known: Usage | undefined): Partial<Usage> {
    const { reserved, target } = this.#call;
    const requested = webSearchesAt(target, reserved.grant.request.webSearches);
    if (requested === undefined) return {};
    const webSearches = Math.max(known?.webSearches ?? 0, target.codec.showsSearches ? this.#searches : requested.max);
    if (webSearches === 0) return {};
    const { input } = known ?? target.uncountedPrompt;
    const withPages = Math.min(Number(target.prompt.maxTokens), input + webSearches * PAGE_TOKENS_PER_SEARCH);
    return { webSearches, input: Math.max(input, withPages) };
  }

  #outputSize(): OutputSize {
    this.#readAll();
    return { outputBytes: this.#outputBytes, media: this.#media };
  }

  /** Whether every answer that began has ended, or the closing count has arrived: later pieces are not content. */
  get finished(): boolean {
    if (this.#hasClosingCount) return true;
    this.#readAll();
    for (const finished of this.#choices.values()) if (!finished) return false;
    return this.#choices.size > 0;
  }

  /** The event of a failure, for the client. */
  toFailureEvent(failure: Failure): Uint8Array {
    this.#readAll();
    return this.#endWriter.toFailureEvent(failure);
  }

  /** The event of the error with which the provider ended the stream, as the client may see it. */
  toErrorEvent(piece: FailedPiece): Uint8Array {
    this.#readAll();
    return this.#endWriter.toErrorEvent(toShownError(piece.error), piece.event);
  }

  /** The events that end the reply at its reservation. */
  toCutEvents(tokens: Settlement['tokens']): ReadonlyArray<Uint8Array> {
    this.#readAll();
    const open = [...this.#choices].filter(([, finished]) => !finished).map(([index]) => index);
    return this.#endWriter.toCutEvents(open, tokens);
  }

  get isCounted(): boolean {
    return this.#usage !== undefined && this.#countsAll(this.#usage);
  }

  /**
   * Whether the count includes all content. A count that arrived with the first words does not, nor does a count of
   * zero.
   */
  #countsAll({ output }: Usage): boolean {
    if (this.#isCountOfOne) return false;
    if (!this.#hasUncountedContent && output > 0) return true;
    this.#readAll();
    return output >= this.#deltas;
  }

  /** The minimum of the output, with this piece: each delta has at least one token, unless the provider has counted. */
  #minOutputWith(piece: Piece): number {
    if (piece.usage !== undefined && !this.#countsOneAnswer(piece)) return piece.usage.output;
    return Math.max(this.#deltas + piece.deltas, this.#usage?.output ?? 0);
  }

  /**
   * Whether a count is of one answer only. A server that counts in each event (vLLM) counts the answer of that event.
   * Others count once, with the last choice or after it: then all answers have ended.
   */
  #countsOneAnswer({ usageOnly, choices }: Piece): boolean {
    const { n } = this.#call.reserved.grant.request;
    if (n === 1 || usageOnly || this.#call.target.provider.countsAllAnswers === true) return false;
    if (this.#isCountOfOne) return true;
    this.#readAll();
    const ended = new Set([...this.#choices].filter(([, finished]) => finished).map(([index]) => index));
    for (const { index, finished } of choices) if (finished) ended.add(index);
    return ended.size < n;
  }
}
