// How does `kubectl apply` know what it wrote last time? By an annotation, which we leave too, so that a person's first apply says `unchanged`.
import type { KubeObject } from '#core/ports/cluster.ts';

const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

/** The object with the annotation as `kubectl apply` itself would write it, to the byte: Go's JSON, members in order, `annotations` always there. */
export function withLastApplied(object: KubeObject): KubeObject {
  const { annotations = {} } = object.metadata;
  const applied = { ...object, metadata: { ...object.metadata, annotations } };
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...annotations, [ANNOTATION]: `${toGoJson(applied)}\n` } },
  };
}

const ESCAPES: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

function toGoJson(value: unknown): string {
  return JSON.stringify(sorted(value)).replace(/[<>&\u2028\u2029]/g, (character) => ESCAPES[character] ?? character);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
}
