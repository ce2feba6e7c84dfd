// What does a trace of a review show? The review, what became of it, and each question to the cluster that it cost.
import type { Cluster, Resource } from '#core/ports/cluster.ts';
import { type Attributes, aboutObject, type Span, type Tracer } from '#core/ports/tracer.ts';
import type { Answer, ReviewRequest, Verb } from './review.ts';

/** An API server that traces says so in `traceparent`, and its trace goes on here. The path is told without its secret. */
export function traceReview<T extends { readonly response: Response }>(
  tracer: Tracer,
  verb: Verb,
  request: Request,
  handle: (span: Span) => Promise<T>,
): Promise<{ readonly handled: T; readonly place: string | undefined }> {
  const attributes = { 'http.request.method': 'POST', 'http.route': `/${verb}` };
  const work = async (span: Span) => {
    const handled = await handle(span);
    const { status } = handled.response;
    span.add({ 'http.response.status_code': status });
    if (status >= 500) span.fail('admission failed: see its log');
    return { handled, place: span.place };
  };
  return tracer.span(`POST /${verb}`, attributes, work, { parent: request.headers.get('traceparent') ?? undefined });
}

/** What is judged, without anything that stands in it. */
export const aboutReview = ({ kind, namespace, name, operation, dryRun }: ReviewRequest): Attributes => ({
  ...aboutObject({ kind: kind.kind, namespace: namespace ?? undefined, name: name ?? undefined }),
  'gateway_operator.operation': operation,
  'gateway_operator.dry_run': dryRun === true,
});

export const aboutAnswer = ({ allowed }: Answer, rules: ReadonlyArray<string>): Attributes => ({
  'gateway_operator.allowed': allowed,
  ...(rules.length === 0 ? {} : { 'gateway_operator.rules': rules.join(' ') }),
});

/** The same cluster; a question is a span. What is selected by (aliases, addresses) stays out of it. */
export function traceLookups(cluster: Cluster, span: Span): Cluster {
  const asked = <T>(verb: string, { plural }: Resource, at: Attributes, ask: () => Promise<T>) =>
    span.span(`${verb} ${plural}`, { 'gateway_operator.resource': plural, ...at }, ask, { kind: 'client' });
  const named = (namespace: string | undefined, name: string): Attributes => ({
    ...(namespace === undefined ? {} : { 'k8s.namespace.name': namespace }),
    'gateway_operator.name': name,
  });
  return {
    ...cluster,
    get: (resource, namespace, name) =>
      asked('get', resource, named(namespace, name), () => cluster.get(resource, namespace, name)),
    list: (resource, selection) => asked('list', resource, {}, () => cluster.list(resource, selection)),
    may: (user, verb, resource, namespace, name) =>
      asked(`may ${verb}`, resource, named(namespace, name), () => cluster.may(user, verb, resource, namespace, name)),
  };
}
