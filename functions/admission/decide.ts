// The decision about the subject of a review: accepted, with or without warnings, or refused.
import { type Finding, toSentences, toText } from '#core/rules/finding.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { CHAINS } from './chain.ts';
import type { FactContext } from './facts/context.ts';
import type { Subject } from './subject.ts';

export interface Decision {
  readonly refused: ReadonlyArray<Finding>;
  readonly warned: ReadonlyArray<Finding>;
}

/**
 * Without `factContext` only the object's own fields are validated (/mutate). On update, a finding that the stored
 * object has too must not refuse a new label, block or budget (DESIGN 5): the stored object is checked as if it were
 * applied now, and findings of both objects are only warnings.
 */
export async function decide({ kind, object, old, dryRun }: Subject, factContext?: FactContext): Promise<Decision> {
  const find = CHAINS[kind.kind];
  const found = await find(object, old, factContext && { ...factContext, other: old });
  const candidates = found.filter(
    ({ effect }) => effect === 'refuse' || (effect === 'refuse-unless-dry-run' && !dryRun),
  );
  const findingsOfStored =
    old === undefined || candidates.length === 0
      ? []
      : await find(old, undefined, factContext && { ...factContext, other: object });
  const storedIdentities = new Set(findingsOfStored.map((finding) => identityOf(finding, old?.spec)));
  const isNew = (finding: Finding) =>
    storedIdentities.size === 0 || !storedIdentities.has(identityOf(finding, object.spec));
  const refused = new Set(candidates.filter(isNew));
  return { refused: [...refused], warned: found.filter((finding) => !refused.has(finding)) };
}

/** The message of the refusal: one finding in one line, several as a list, the most important first. */
export function refusalTextOf({ refused }: Decision, { kind, object }: Subject): string | undefined {
  if (refused.length === 0) return undefined;
  if (toSentences(refused).length === 1) return toText(refused);
  const { name } = object.metadata;
  return `${kind.kind}${name === undefined ? '' : ` ${JSON.stringify(name)}`} is invalid:\n${toText(refused)}`;
}

/**
 * Rule, value and path of a finding in one text. Elements of lists are named by their key, so a finding keeps its
 * identity when its list is reordered.
 */
export function identityOf({ rule, path, value }: Finding, spec: unknown): string {
  return JSON.stringify([rule, pathWithNames(path, spec), value ?? null]);
}

/**
 * `spec.models[2].gatewayParams` → `spec.models{"gpt-4o"}.gatewayParams`: by `identifier`, `name`, `key`, or the
 * element itself.
 */
function pathWithNames(path: string, spec: unknown): string {
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
