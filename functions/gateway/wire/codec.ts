// Codecs: each writes requests of one API for providers of one dialect, and reads their replies and streams.
import type { Failure } from '#core/failure/failure.ts';
import type { Result } from '#core/failure/result.ts';
import type { Provider } from '#core/models/providers.ts';
import type { SnapshotEntry } from '#core/models/snapshot.ts';
import type { Usage } from '#core/money/usage.ts';
import type { Tokens } from '#core/ports/ledger-rows.ts';
import type { Signing, UpstreamRequest } from '#core/ports/upstream.ts';
import type { ModelRequest } from './request.ts';
import type { ResizePending } from './streams/sse.ts';

/**
 * A codec of an API and a dialect. Bytes pass unchanged if the provider speaks the client's API; otherwise they are
 * translated.
 */
export interface Codec {
  /** The codec translates. Then the text of a request may grow, because its numbers are written again. */
  readonly isTranslated: boolean;
  /** The part of the call that all requests to an address share. */
  routeTo(address: Address): ProviderRoute;
  /** The call for a request; a failure if the dialect cannot express the request. */
  toCall(request: ModelRequest, recipient: Recipient): Result<Call, Failure>;
  /** The whole reply for the client, with its count; undefined: the body is no reply of this API. */
  readReply(bytes: Uint8Array, options: ReplyOptions): Reply | undefined;
  /**
   * The same for a long reply whose beginning and end have everything that is needed: millions of numbers take long to
   * parse. Undefined: the whole reply is needed.
   */
  readEdges?(bytes: Uint8Array): Reply | undefined;
  /** Reads the body of a refusal. */
  readError(bytes: Uint8Array): WireError;
  /** The provider counts tokens at the API's own path; absent: the gateway estimates the count. */
  readonly countsTokens?: true;
  /** Streams show each web search. */
  readonly showsSearches?: true;
  /** Absent: the API has no streams. */
  readonly streams?: StreamFormat;
}

/** A request to a provider, without the parts that are the same for all APIs. */
export type Call = Pick<UpstreamRequest, 'url' | 'query' | 'headers' | 'body' | 'signing'>;

/** The streams of a provider, and the ends that the gateway adds. */
export interface StreamFormat {
  /** Reads one stream from its first byte to its last. */
  createReader(options: ReplyOptions): StreamReader;
  createEndWriter(request: ModelRequest): EndWriter;
  /** An event that the client ignores, for times without an event of the provider; absent: none. */
  readonly keepAlive?: Uint8Array;
}

/**
 * Writes the last events of a stream whose provider did not end it, or ended it with an error. It must see each event
 * of the stream before, since the last events depend on them.
 */
export interface EndWriter {
  /** Records an event that the client has seen. */
  record(piece: Piece): void;
  /** The event of a failure. Nothing follows it, so that no client takes the reply for a whole one. */
  toFailureEvent(failure: Failure): Uint8Array;
  /**
   * The event of the error with which the provider ended the stream; nothing follows it. `event`: the provider's event.
   */
  toErrorEvent(error: ShownError, event: unknown): Uint8Array;
  /** The events that end the reply, as at the client's own limit. `open`: answers that began and have not ended. */
  toCutEvents(open: ReadonlyArray<number>, tokens: Tokens): ReadonlyArray<Uint8Array>;
}

/** The address of a model entry, and its credentials. */
export interface Address {
  readonly entry: SnapshotEntry;
  readonly provider: Provider;
  /** The address before the API's path, without a slash at its end. */
  readonly base: string;
  /** The values of credentials, by name. */
  readonly credentials: Readonly<Record<string, string>>;
}

/** The URL and the headers of all requests to an address, plain ones and streams. */
export interface ProviderRoute {
  readonly url: string;
  /** The URL of streams; absent: the same URL. */
  readonly streamUrl?: string;
  readonly headers: { readonly plain: Headers; readonly stream: Headers };
}

type Headers = Readonly<Record<string, string>>;

/** A model entry that can be called. */
export interface Endpoint extends Address {
  readonly codec: Codec;
  readonly route: ProviderRoute;
  readonly signing: Signing | undefined;
}

/** The model entry that a request is written for. */
export interface Recipient {
  readonly endpoint: Endpoint;
  readonly limit: OutputLimit;
}

/** The maximum output of a target within the reservation. */
export interface OutputLimit {
  /** The maximum tokens of one answer: for dialects that require a limit. */
  readonly max: number;
  /** The limit that is sent for each answer; absent: none is sent. */
  readonly sentLimit?: number | undefined;
  /** `sentLimit` is less than the client's limit. */
  readonly clamped: boolean;
  /** A stream is cut when it has certainly produced more tokens than this; absent: the target is free. */
  readonly cutAt?: bigint;
}

/** The values that a codec needs to read a reply, beside its bytes. */
export interface ReplyOptions {
  /** The date of the reply, in seconds since the Unix epoch. */
  readonly created: number;
  /** The mark of the model entry, if the model has several model entries; absent: replies get no marks. */
  readonly modelEntryMark?: string | undefined;
  /** Adds to an id of stored state the mark that binds it to the VirtualKey; absent: providers store nothing. */
  readonly markId?: ((id: string) => string) | undefined;
  /** Removes the model entry's credentials from a provider's text. */
  readonly redact: (text: string) => string;
  /** Takes memory for an event whose end has not arrived. */
  readonly resizePending?: ResizePending;
}

export interface Reply {
  /** The body; as a text if that is equal, because headers and text together take one cheap system call. */
  readonly body: string | Uint8Array;
  /** The provider's own count. */
  readonly usage: Usage | undefined;
  /** The size of the output, for replies without a count: sizing takes as long as parsing. */
  readonly size: () => OutputSize;
}

export interface OutputSize {
  readonly outputBytes: number;
  /** Tokens of the audio (estimated) and of the images (maximum), which `outputBytes` does not include. */
  readonly media: number;
}

export interface StreamReader {
  /** The pieces that end in these bytes, together with earlier bytes. */
  push(bytes: Uint8Array): ReadonlyArray<Piece>;
  /** The last pieces, after the upstream has ended. */
  end(): ReadonlyArray<Piece>;
}

/** A piece of a stream for the client (one event, or some of OpenAI's dialect), and its content. */
export interface Piece extends OutputSize {
  readonly bytes: Uint8Array;
  /**
   * Reads the events of an unread piece. They only continue answers: none contains a count or an error, or ends the
   * stream. Until they are read, all members below are as in `EMPTY_PIECE`.
   */
  readonly readEvents: ((bytes: Uint8Array) => ReadonlyArray<Piece>) | undefined;
  /** The last piece of the stream, such as `[DONE]`. */
  readonly done: boolean;
  /** The number of its deltas with content. Each has at least one token. */
  readonly deltas: number;
  /** Web searches of the provider in this event. */
  readonly searches: number;
  readonly usage: Usage | undefined;
  /** The provider's count of the prompt, sent before the answer is counted: its `output` has no meaning yet. */
  readonly prompt: Usage | undefined;
  /** The piece contains only the usage: passed only to a client that requested it. */
  readonly usageOnly: boolean;
  /** The answers that this piece begins or continues; `finished`: the answer ends. */
  readonly choices: ReadonlyArray<{ readonly index: number; readonly finished: boolean }>;
  /** The parsed event, for the end of the stream; undefined: it is no part of an answer. */
  readonly event: unknown;
  readonly error: WireError | undefined;
}

/** A provider's error as clients may see it. */
export interface ShownError extends Pick<WireError, 'type' | 'code' | 'param'> {
  /** Our own message: the provider's may contain the prompt, or name its account. */
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
  event: undefined,
  error: undefined,
};

/** The choices of a stream with one answer, while the answer continues and when it ends. */
export const OPEN_ANSWER: Piece['choices'] = [{ index: 0, finished: false }];
export const ENDED_ANSWER: Piece['choices'] = [{ index: 0, finished: true }];

/** An error of the provider: a refusal, or the end of a stream. */
export interface WireError {
  readonly message: string | undefined;
  readonly param: string | undefined;
  readonly type: string | undefined;
  /** The provider's own code, or its type if it has no code. */
  readonly code: string | undefined;
  /** The status that an error inside a stream would have had. */
  readonly status: number | undefined;
  /** The whole refusal, if clients of the API read it unchanged; absent: they get the gateway's refusal. */
  readonly body?: string | undefined;
}

/** The call of an endpoint with this body. */
export function toCall({ stream, forwardedHead }: ModelRequest, { endpoint }: Recipient, body: Call['body']): Call {
  const { route, signing } = endpoint;
  const { headers } = route;
  const url = stream ? (route.streamUrl ?? route.url) : route.url;
  const shared = stream ? headers.stream : headers.plain;
  if (forwardedHead === undefined) return { url, headers: shared, body, signing };
  return { url, query: forwardedHead.query, headers: { ...shared, ...forwardedHead.headers }, body, signing };
}

/** The header with the provider's key; none without a key. */
export function authOf({ provider: { auth }, credentials: { apiKey } }: Address): Headers {
  if (apiKey === undefined) return {};
  return { [auth]: auth === 'authorization' ? `Bearer ${apiKey}` : apiKey };
}

/** A route with these headers and the common headers of every request to a provider. */
export function toRoute(url: string, own: Headers): ProviderRoute {
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
