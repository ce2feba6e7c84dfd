// A stand-in for an OpenTelemetry collector: an HTTP server that receives OTLP in JSON and keeps it.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: object }>;
  readonly status: { readonly code: number; readonly message?: string };
}

export interface CollectedSpans {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly resource: Readonly<Record<string, object>>;
  readonly spans: ReadonlyArray<CollectedSpan>;
}

export interface Collector {
  readonly url: string;
  readonly posts: CollectedSpans[];
  spans(): ReadonlyArray<CollectedSpan & { readonly service: unknown }>;
  /** The posted bodies, in order. */
  text(): string;
  close(): Promise<void>;
}

interface Export {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: { readonly attributes: CollectedSpan['attributes'] };
    readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<CollectedSpan> }>;
  }>;
}

export async function startCollector(status = 200): Promise<Collector> {
  const posts: CollectedSpans[] = [];
  let text = '';
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    text += body;
    for (const { resource, scopeSpans } of (JSON.parse(body) as Export).resourceSpans) {
      const attributes = resource.attributes.map(({ key, value }) => [key, Object.values(value)[0]] as const);
      posts.push({
        path: request.url ?? '',
        headers: request.headers,
        resource: Object.fromEntries(attributes),
        spans: scopeSpans.flatMap(({ spans }) => spans),
      });
    }
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posts,
    spans: () =>
      posts.flatMap(({ resource, spans }) => spans.map((span) => ({ ...span, service: resource['service.name'] }))),
    text: () => text,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
