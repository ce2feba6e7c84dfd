// A dialect of the sample upstream: how a request is read, and a reply, a stream or an error is written.
import type { Completion, CompletionRequest, Usage } from './completion.ts';

export interface Dialect {
  /** The request in the words of chat completions, or what is wrong with it. */
  read(body: unknown): { readonly request: CompletionRequest } | { readonly wrong: string };
  toReply(completion: Completion): object;
  toStream(completion: Completion): Events;
  toError(status: number, code: string, message: string): object;
}

/** Texts of server-sent events. */
export interface Events {
  readonly first: string;
  token(text: string): string;
  readonly last: string;
  /** The usage that the stream reports. */
  readonly usage: Usage | undefined;
}
