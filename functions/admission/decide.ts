// The decision about a subject: let in, with which warnings, or refused.
import { type Finding, toSentences, toText } from '#core/rules/finding.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { CHAIN } from './chain.ts';
import type { FactContext } from './facts.ts';
import type { Subject } from './subject.ts';

export interface Decision {
  readonly refused: ReadonlyArray<Finding>;
  readonly warned: ReadonlyArray<Finding>;
}

/**
 * Without `ask` the object is validated by itself (/mutate). On update a finding that the stored object has too is no
 * reason to refuse a label, a block or a budget (DESIGN 5): the stored object is checked as if it were applied now, and
 * its findings are warnings.
 */
export async function decide({ kind, object, old, dryRun }: Subject, ask?: FactContext): Promise<Decision> {
  const find = CHAIN[kind.kind];
  const found = await find(object, old, ask);
  const candidates = found.filter(
    ({ effect }) => effect === 'refuse' || (effect === 'refuse-unless-dry-run' && !dryRun),
  );
  const known = old === undefined || candidates.length === 0 ? [] : await find(old, undefined, ask);
  const before = new Set(known.map((finding) => identityOf(finding, old?.spec)));
  const isNew = (finding: Finding) => before.size === 0 || !before.has(identityOf(finding, object.spec));
  const refused = new Set(candidates.filter(isNew));
  return { refused: [...refused], warned: found.filter((finding) => !refused.has(finding)) };
}

/** One refusal in one line; several as a list, the most important first. Undefined: nothing is refused. */
export function refusalOf({ refused }: Decision, { kind, object }: Subject): string | undefined {
  if (refused.length === 0) return undefined;
  if (toSentences(refused).length === 1) return toText(refused);
  const { name } = object.metadata;
  return `${kind.kind}${name === undefined ? '' : ` ${JSON.stringify(name)}`} is invalid:\n${toText(refused)}`;
}

/**
 * Rule, value and path in one text, with list entries named by their key: a finding keeps its identity when its list is
 * reordered.
 */
export function identityOf({ rule, path, value }: Finding, spec: unknown): string {
  return JSON.stringify([rule, placeOf(path, spec), value ?? null]);
}

/**
 * `spec.models[2].gatewayParams` → `spec.models{"gpt-4o"}.gatewayParams`: by `identifier`, `name`, or the entry itself.
 */
function placeOf(path: string, spec: unknown): string {
  let at: unknown = { spec };
  return path.replace(/\.?([A-Za-z][A-Za-z0-9]*)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]/g, (step, member, index) => {
    if (index !== undefined && Array.isArray(at)) {
      at = at[Number(index)];
      const key = isMap(at) ? (at.identifier ?? at.name ?? at.key) : at;
      return typeof key === 'string' ? `{${JSON.stringify(key)}}` : step;
    }
    at = isMap(at) && member !== undefined && Object.hasOwn(at, member) ? at[member] : undefined;
    return step;
  });
}
