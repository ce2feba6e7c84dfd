// What was followed, as a test sees it: every span with the names of those above it, in the order in which they began.
import type { Attributes, OpenSpan, Origin, Tracer } from './tracer.ts';

export interface Followed {
  /** `reconcile > reconcile part`. */
  readonly path: string;
  readonly origin: Origin;
  attributes: Attributes;
  failed?: string;
  /** How often. */
  ends: number;
}

export function createTracerFake(): Tracer & { readonly spans: Followed[] } {
  const spans: Followed[] = [];
  const tracerAt = (above: string): Tracer => {
    const begin = (name: string, attributes: Attributes, origin: Origin = {}): OpenSpan => {
      const followed: Followed = { path: `${above}${name}`, origin, attributes, ends: 0 };
      spans.push(followed);
      return {
        ...tracerAt(`${followed.path} > `),
        place: `place of ${followed.path}`,
        add: (more) => {
          followed.attributes = { ...followed.attributes, ...more };
        },
        fail: (why) => {
          followed.failed = why;
        },
        end: () => {
          followed.ends += 1;
        },
      };
    };
    return {
      begin,
      span: async (name, attributes, work, origin) => {
        const span = begin(name, attributes, origin);
        return work(span).finally(span.end);
      },
    };
  };
  return { ...tracerAt(''), spans };
}
