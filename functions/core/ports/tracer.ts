// Who follows what a request did, step by step? Spans, as OpenTelemetry has them; absent where no endpoint is configured.

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** One step under way: what is learned of it is added, and its own steps are traced with it. */
export interface Span extends Tracer {
  add(attributes: Attributes): void;
  /** It did not succeed, though nothing was thrown. */
  fail(why: string): void;
}

/** Never throws by itself, and holds nothing up. Names and attributes never hold a key, a prompt or a password. */
export interface Tracer {
  /** Ends with `work`; a rejection marks it failed and goes on. `parent`: a W3C `traceparent` of whoever asked. */
  span<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>, parent?: string): Promise<T>;
}

/** Traces nothing. */
export const noTracer: Span = {
  span: (_name, _attributes, work) => work(noTracer),
  add: () => undefined,
  fail: () => undefined,
};
