// Field and label selectors of the double.

import { ClusterError, type KubeObject, type Resource } from '#core/ports/cluster.ts';
import { kinds } from '../../crds/kinds/kinds.ts';
import { isRecord } from './merge-patch.ts';

/** Selectable fields of core kinds; our kinds declare theirs in crds/. An undeclared field is a 400. */
const SELECTABLE: Readonly<Record<string, ReadonlyArray<string>>> = {
  events: ['involvedObject.kind', 'involvedObject.name', 'involvedObject.namespace', 'involvedObject.uid', 'reason'],
  secrets: ['type'],
  ...Object.fromEntries(
    kinds.map(({ plural, selectableFields }) => [plural, selectableFields.map((path) => path.slice(1))]),
  ),
};

/**
 * A predicate for a field selector (`a=b,c!=d`; `\,`, `\=` and `\\` escape). Throws on a field that is not selectable.
 */
export function toFieldPredicate(resource: Resource, selector: string | undefined): (object: KubeObject) => boolean {
  const known = ['metadata.name', 'metadata.namespace', ...(SELECTABLE[resource.plural] ?? [])];
  const terms = split(selector ?? '', ',').map((term) => {
    const match = /^((?:\\.|[^\\=!])+)(==|=|!=)(.*)$/s.exec(term);
    const [, field = '', operator, value = ''] = match ?? [];
    if (match === null || !known.includes(field)) {
      throw new ClusterError(`field label not supported: ${JSON.stringify(term)} on ${resource.plural}`, 400);
    }
    return { path: field.split('.'), equal: operator !== '!=', value: value.replace(/\\(.)/gs, '$1') };
  });
  return (object) => terms.every(({ path, equal, value }) => (at(object, path) === value) === equal);
}

/** A predicate for a label selector: `a=b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b,c)`. */
export function toLabelPredicate(selector: string | undefined): (object: KubeObject) => boolean {
  const terms = (selector ?? '').match(/[^,()]+(\([^)]*\))?/g) ?? [];
  const tests = terms.map((term) => toRequirement(term.trim()));
  return (object) => tests.every((test) => test(object.metadata.labels ?? {}));
}

type Labels = Readonly<Record<string, string>>;

function toRequirement(term: string): (labels: Labels) => boolean {
  const [, key = '', operator, list = ''] = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term) ?? [];
  if (operator !== undefined) {
    const values = list.split(',').map((value) => value.trim());
    return (labels) => values.includes(labels[key] ?? '\0') === (operator === 'in');
  }
  const [, name = '', sign, value = ''] = /^([^=!\s]+)\s*(==|=|!=)\s*(\S*)$/.exec(term) ?? [];
  if (sign !== undefined) return (labels) => (labels[name] === value) === (sign !== '!=');
  return term.startsWith('!') ? (labels) => !(term.slice(1) in labels) : (labels) => term in labels;
}

/** The parts between unescaped separators; backslashes stay. */
function split(text: string, separator: string): string[] {
  const parts = [''];
  for (const piece of text.match(/\\.|./gs) ?? []) {
    if (piece === separator) parts.push('');
    else parts[parts.length - 1] += piece;
  }
  return parts.filter((part) => part !== '');
}

/** The value of a field; an absent one is the empty text, as on a real API server. */
function at(value: unknown, path: ReadonlyArray<string>): unknown {
  const found = path.reduce<unknown>((part, member) => (isRecord(part) ? part[member] : undefined), value);
  return found ?? '';
}
