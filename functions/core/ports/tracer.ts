// Who follows what a request did, step by step? Spans, as OpenTelemetry has them; absent where no endpoint is configured.

export type Attributes = Readonly<Record<string, string | number | boolean>>;

interface Named {
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** An object of the cluster, in the field's names where it has any. */
export const aboutObject = ({ kind, namespace, name }: Named): Attributes => ({
  'gateway_operator.kind': kind,
  ...(namespace === undefined ? {} : { 'k8s.namespace.name': namespace }),
  ...(name === undefined ? {} : { 'gateway_operator.name': name }),
});

/** One step under way: what is learned of it is added, and its own steps are traced with it. */
export interface Span extends Tracer {
  add(attributes: Attributes): void;
  /** It did not succeed, though nothing was thrown. */
  fail(why: string): void;
  /** As W3C's `traceparent` says where this is: for those of us who are asked to go on. Absent: nobody follows. */
  readonly place?: string;
}

/** One that outlasts the call that began it, such as a stream. Ending it again is harmless. */
export interface OpenSpan extends Span {
  end(): void;
}

export interface Origin {
  /** A W3C `traceparent` of whoever asked; anything else begins a trace of our own. */
  readonly parent?: string | undefined;
  /** Somebody else is asked. Absent: it is ours, or was asked of us where it is the first. */
  readonly kind?: 'client';
}

/** Never throws by itself, and holds nothing up. Names and attributes never hold a key, a prompt or a password. */
export interface Tracer {
  /** Ends with `work`; a rejection marks it failed and goes on. */
  span<T>(name: string, attributes: Attributes, work: (span: Span) => Promise<T>, origin?: Origin): Promise<T>;
  begin(name: string, attributes: Attributes, origin?: Origin): OpenSpan;
}

/** Traces nothing. */
export const noTracer: OpenSpan = {
  span: (_name, _attributes, work) => work(noTracer),
  begin: () => noTracer,
  add: () => undefined,
  fail: () => undefined,
  end: () => undefined,
};
