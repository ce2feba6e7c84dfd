// Codecs: how requests of one API are written for providers of one dialect, and how their replies and streams reach the
// client.
import type { Failure } from '#core/failure/failure.ts';
import type { Result } from '#core/failure/result.ts';
import type { Provider } from '#core/models/providers.ts';
import type { SnapshotEntry } from '#core/models/snapshot.ts';
import type { Usage } from '#core/money/usage.ts';
import type { Tokens } from '#core/ports/ledger-rows.ts';
import type { Signing, UpstreamRequest } from '#core/ports/serving.ts';
import type { ModelRequest } from './request.ts';
import type { ResizePending } from './streams/sse.ts';

/** Byte for byte where the provider speaks the client's API; by translation elsewhere. */
export interface Codec {
  /** The text of a request may grow on its way, because numbers are written again. */
  readonly isTranslated: boolean;
  /** The part that all requests to an address share. */
  routeTo(address: Address): Route;
  /** The request as it is sent; a failure where the dialect cannot express it. */
  toCall(request: ModelRequest, to: Recipient): Result<Call, Failure>;
  /** A whole reply as the client gets it, and its counts; undefined when it is no reply of this API. */
  readReply(bytes: Uint8Array, made: ReplyMarks): Reply | undefined;
  /**
   * The same of a long reply whose beginning and end show all that is needed: millions of numbers take long to parse.
   * Undefined: they do not.
   */
  readEdges?(bytes: Uint8Array): Reply | undefined;
  /** Reads the body of a refusal. */
  readError(bytes: Uint8Array): WireError;
  /** The provider counts the tokens of a prompt at the API's own path; absent: the count is estimated. */
  readonly countsTokens?: true;
  /** Streams show each web search. */
  readonly showsSearches?: true;
  /** Absent: the API has no streams. */
  readonly streams?: StreamFormat;
}

/** A request to a provider, without what is the same for all APIs. */
export type Call = Pick<UpstreamRequest, 'url' | 'query' | 'headers' | 'body' | 'signing'>;

/** Streams as they come from a provider, and the ends that the gateway gives them. */
export interface StreamFormat {
  /** Reads one stream from its first byte to its last. */
  createReader(made: ReplyMarks): StreamReader;
  createEnd(request: ModelRequest): StreamEnd;
  /** An event that the client ignores, for the time in which the provider is silent; absent: there is none. */
  readonly keepAlive?: Uint8Array;
}

/** The end of a stream that its provider did not end, or ended by an error. */
export interface StreamEnd {
  /** Learns of an event that the client has seen. */
  record(piece: Piece): void;
  /** An error in the stream; nothing follows, so that no client takes the reply for a whole one. */
  toFailureEvent(failure: Failure): Uint8Array;
  /** The error by which the provider has ended the stream, in this event; nothing follows. */
  toErrorEvent(error: ShownError, event: unknown): Uint8Array;
  /** The events that end the reply as at the client's own limit. `open`: answers that began and have not ended. */
  toCutEvents(open: ReadonlyArray<number>, tokens: Tokens): ReadonlyArray<Uint8Array>;
}

/** An address and its credentials, at which an entry is called. */
export interface Address {
  readonly entry: SnapshotEntry;
  readonly provider: Provider;
  /** The address before the API's path, without a slash at its end. */
  readonly base: string;
  /** Values by credential name. */
  readonly credentials: Readonly<Record<string, string>>;
}

/** The URL and the headers of every request to an address, by whether the request is for a stream. */
export interface Route {
  readonly url: string;
  /** The URL of streams, where it is another one. */
  readonly streamUrl?: string;
  readonly headers: { readonly plain: Headers; readonly stream: Headers };
}

type Headers = Readonly<Record<string, string>>;

/** An entry that can be called. */
export interface Endpoint extends Address {
  readonly codec: Codec;
  readonly route: Route;
  readonly signing: Signing | undefined;
}

/** An entry as a request is written for it. */
export interface Recipient {
  readonly endpoint: Endpoint;
  readonly limit: OutputLimit;
}

/** The output that a target may produce within the reservation. */
export interface OutputLimit {
  /** Tokens of one answer, at most: for dialects that require a limit. */
  readonly max: number;
  /** The limit that is sent for each answer; absent where the request needs none. */
  readonly sentLimit?: number;
  /** `send` is less than the client's limit. */
  readonly clamped: boolean;
  /** A stream that has surely produced more than this is cut; absent where the target is free. */
  readonly cutAt?: bigint;
}

/** How a reply was made, for the parts of it that its dialect does not tell. */
export interface ReplyMarks {
  /** Seconds since the Unix epoch: the date of a reply. */
  readonly created: number;
  /** The mark of the entry, where the model has several; absent: nothing is marked. */
  readonly entryMark?: string | undefined;
  /**
   * An id of what the provider stores, with the mark that binds it to the VirtualKey; absent: providers store nothing.
   */
  readonly markId?: ((id: string) => string) | undefined;
  /** Takes our credentials out of a provider's words. */
  readonly redact: (words: string) => string;
  /** Room for an event that has not ended. */
  readonly resizePending?: ResizePending;
}

export interface Reply {
  /** The body, as a text where that is equal: headers and text together take one cheap system call. */
  readonly body: string | Uint8Array;
  /** The provider's own count. */
  readonly usage: Usage | undefined;
  /** The size of all output, for replies without a count: a long reply takes as long to size as to parse. */
  readonly size: () => OutputSize;
}

export interface OutputSize {
  readonly outputBytes: number;
  /** Tokens of its sound (estimated) and its pictures (at most), not included in the text. */
  readonly media: number;
}

export interface StreamReader {
  /** The pieces that these bytes complete, together with earlier bytes that were left over. */
  push(bytes: Uint8Array): ReadonlyArray<Piece>;
  /** The rest when the upstream has ended. */
  end(): ReadonlyArray<Piece>;
}

/** A piece of a stream as the client gets it (an event or a few in OpenAI's dialect), and what is in it. */
export interface Piece extends OutputSize {
  readonly bytes: Uint8Array;
  /**
   * Reads the events of an unread piece: they continue answers, and none of them contains a count or an error or ends
   * the stream. Until then everything below is as in `NOTHING`.
   */
  readonly readEvents: ((bytes: Uint8Array) => ReadonlyArray<Piece>) | undefined;
  /** `[DONE]`. */
  readonly done: boolean;
  /** Pieces of content, a lower bound of the tokens. */
  readonly deltas: number;
  /** Web searches of the provider that this event shows. */
  readonly searches: number;
  readonly usage: Usage | undefined;
  /** The provider's count of the prompt, sent before the answer is counted: its `output` has no meaning yet. */
  readonly prompt: Usage | undefined;
  /** Nothing but the usage: shown only to a client that asked for it. */
  readonly usageOnly: boolean;
  /** Answers that this piece begins or continues, and whether they end. */
  readonly choices: ReadonlyArray<{ readonly index: number; readonly finished: boolean }>;
  /** The parsed event, for the end of the stream; absent: the event is no part of an answer. */
  readonly frame: unknown;
  readonly error: WireError | undefined;
}

/** A provider's error as clients may see it. */
export interface ShownError extends Pick<WireError, 'type' | 'code' | 'param'> {
  /** The words are ours: the provider's may hold the prompt, or name its account. */
  readonly message: string;
}

/** A piece with an error. */
export interface FailedPiece extends Piece {
  readonly error: WireError;
}

export const EMPTY_PIECE: Piece = {
  bytes: new Uint8Array(0),
  readEvents: undefined,
  done: false,
  deltas: 0,
  searches: 0,
  outputBytes: 0,
  media: 0,
  usage: undefined,
  prompt: undefined,
  usageOnly: false,
  choices: [],
  frame: undefined,
  error: undefined,
};

/** The only answer of a stream, when it continues and when it ends. */
export const OPEN_ANSWER: Piece['choices'] = [{ index: 0, finished: false }];
export const ENDED_ANSWER: Piece['choices'] = [{ index: 0, finished: true }];

/** A refusal: the provider's message and code. */
export interface WireError {
  readonly message: string | undefined;
  readonly param: string | undefined;
  readonly type: string | undefined;
  /** The provider's own code, or its type where it has none. */
  readonly code: string | undefined;
  /** The status that an error inside a stream would have had. */
  readonly status: number | undefined;
  /** The whole refusal, where clients of the API read it as it is; absent: they get the gateway's. */
  readonly body?: string | undefined;
}

/** The call of this endpoint with this body. */
export function toCall({ stream, forwardedHead }: ModelRequest, { endpoint }: Recipient, body: Call['body']): Call {
  const { route, signing } = endpoint;
  const { headers } = route;
  const url = stream ? (route.streamUrl ?? route.url) : route.url;
  const shared = stream ? headers.stream : headers.plain;
  if (forwardedHead === undefined) return { url, headers: shared, body, signing };
  return { url, query: forwardedHead.query, headers: { ...shared, ...forwardedHead.headers }, body, signing };
}

/** The header that carries the provider's key; none without one. */
export function authOf({ provider: { auth }, credentials: { apiKey } }: Address): Headers {
  if (apiKey === undefined) return {};
  return { [auth]: auth === 'authorization' ? `Bearer ${apiKey}` : apiKey };
}

/** A route with these headers and those of every request to a provider. */
export function toRoute(url: string, own: Headers): Route {
  const shared = {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'gateway-operator',
    ...own,
  };
  return {
    url,
    headers: { plain: { accept: 'application/json', ...shared }, stream: { accept: 'text/event-stream', ...shared } },
  };
}
