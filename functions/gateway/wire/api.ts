// APIs of clients, as the pipeline uses them: how a request is read, which dialects serve it, and how an error is
// written.
import type { Failure } from '#core/failure/failure.ts';
import type { Result } from '#core/failure/result.ts';
import type { ApiName, DialectName, Provider } from '#core/models/providers.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Codec } from './codec.ts';
import type { ErrorFormat } from './dialects/error-format.ts';
import type { ModelRequest } from './request.ts';

/** One route that spends, with everything in which two routes differ. */
export interface Api {
  readonly name: ApiName;
  /** The name in log lines and metrics. */
  readonly route: string;
  readonly path: string;
  /** Codecs by the dialect of the provider. A model entry of another dialect is never a target. */
  readonly codecs: Readonly<Partial<Record<DialectName, Codec>>>;
  readonly errors: ErrorFormat;
  /** The route below this one that counts the tokens of a prompt; absent: none. */
  readonly counting?: { readonly path: string; toReply(tokens: number): object };
  /** The reply without a provider's answer; absent: replies are not free. */
  estimate?(request: ModelRequest): object;
  /** Replies have tokens of their own, so a model entry needs a price for them. */
  readonly hasOutput: boolean;
  /** Validates a body, and reads the members that decide its maximum cost. */
  toRequest(bytes: Uint8Array, client: Pick<HttpExchange, 'header' | 'query'>): Result<ModelRequest, Failure>;
}

/** The codec for this provider's model entries; undefined: the provider does not have the route. */
export function codecOf({ name, codecs }: Api, { dialect, apis }: Provider): Codec | undefined {
  return apis.includes(name) ? codecs[dialect] : undefined;
}
