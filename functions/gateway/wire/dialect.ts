// What must be known of a provider's wire format? One of these per dialect; the pipeline knows none of them.
import type { Failure } from '#core/failure.ts';
import type { Result } from '#core/result.ts';
import type { Usage } from '#core/usage.ts';
import type { Chat } from '../chat.ts';
import type { Recipient } from '../endpoint.ts';

export interface Dialect {
  /** What is sent for this request; a failure where the dialect has no words for it. */
  toRequest(chat: Chat, to: Recipient): Result<WireRequest, Failure>;
  /** A whole reply as the client gets it, and what was counted in it; undefined when it is no chat completion. */
  readReply(bytes: Uint8Array, created: Seconds): Reply | undefined;
  /** What a refusal says. */
  readError(bytes: Uint8Array): WireError;
  /** For the streams of one model entry: what they have in common need not be found out by each of them. */
  createReaders(): CreateReader;
}

/** Since the Unix epoch: the date of a reply, for dialects that give none. */
export type Seconds = number;

export interface WireRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface Reply {
  /** A text where it says the same: written together with its headers it costs the system one call of its cheapest kind. */
  readonly body: string | Uint8Array;
  /** The provider's own count. */
  readonly usage: Usage | undefined;
  /** Bytes of all it said, for where nobody counted: a long reply takes as long to count as to parse. */
  readonly bytesSaid: () => number;
  /** Tokens of its sound, about. */
  readonly sound: () => number;
}

export interface WireError {
  readonly message: string | undefined;
  readonly param: string | undefined;
  /** The provider's own word for it, for the log. */
  readonly code: string | undefined;
  /** The status it would have had, where it came inside a stream. */
  readonly status: number | undefined;
}

/** Reads one stream from its first byte to its last. */
export type CreateReader = (created: Seconds) => StreamReader;

export interface StreamReader {
  /** The complete pieces that these bytes bring, together with what was left over before. */
  push(bytes: Uint8Array): ReadonlyArray<Piece>;
  /** What is left when the upstream has ended. */
  end(): ReadonlyArray<Piece>;
}

/** A piece of a stream as the client gets it (an event or a few in OpenAI's dialect), and what is in it. */
export interface Piece {
  readonly bytes: Uint8Array;
  /** Its events one by one, where they are several: for when the money ends among them. */
  readonly events: (() => ReadonlyArray<Piece>) | undefined;
  /** `[DONE]`. */
  readonly done: boolean;
  /** Pieces of content: at least so many tokens were produced. */
  readonly deltas: number;
  readonly bytesSaid: number;
  /** Tokens of sound, about: they are beside the text. */
  readonly sound: number;
  readonly usage: Usage | undefined;
  /** The provider's count of the prompt, told before the answer is counted: its `output` says nothing yet. */
  readonly prompt: Usage | undefined;
  /** Nothing but the usage: shown only to a client that asked for it. */
  readonly usageOnly: boolean;
  /** Answers that this piece begins or goes on with, and those of them that end. */
  readonly choices: ReadonlyArray<{ readonly index: number; readonly finished: boolean }>;
  /** Members that all chunks of a stream share; told once is enough. Few ask. */
  readonly frame: (() => Readonly<Record<string, unknown>>) | undefined;
  readonly error: WireError | undefined;
}

export const NOTHING: Piece = {
  bytes: new Uint8Array(0),
  events: undefined,
  done: false,
  deltas: 0,
  bytesSaid: 0,
  sound: 0,
  usage: undefined,
  prompt: undefined,
  usageOnly: false,
  choices: [],
  frame: undefined,
  error: undefined,
};
