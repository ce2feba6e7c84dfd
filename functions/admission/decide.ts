// Is the object let in, with which warnings, or refused, and why?

import type { Finding } from '#core/finding.ts';
import type { AloneCheck, Check } from './check.ts';
import { ALONE, TOGETHER } from './checks.ts';
import type { Lookup } from './lookup.ts';
import { identityOf } from './place.ts';
import type { Draft, Subject } from './subject.ts';

export interface Decision {
  readonly refused: ReadonlyArray<Finding>;
  readonly warned: ReadonlyArray<Finding>;
}

/** /mutate: what the object shows alone. Its warnings are told by /validate, which judges again. */
export function decideAlone(subject: Subject): Decision {
  const { refused } = weigh(alone(subject), subject, () => (subject.old ? alone(asStored(subject, subject.old)) : []));
  return { refused, warned: [] };
}

/** Resolves when there is no more time: then what was found so far decides, if it refuses. */
export type Deadline = Promise<'late'>;

/** Judging was not possible: the cluster did not answer, or not in time. Our fault, not the object's. */
export class Undecided extends Error {
  override readonly name = 'Undecided';
}

/** /validate: everything, with what the object refers to. Throws `Undecided` when what could be found out does not refuse. */
export async function decide(subject: Subject, lookup: Lookup, deadline: Deadline): Promise<Decision> {
  const own = alone(subject);
  const together = await run(TOGETHER[subject.kind.kind], subject, lookup, deadline);
  const found = [...own, ...together.findings];
  const mayBeOld = subject.old !== undefined && found.some((finding) => finding.effect !== 'warn');
  const before = mayBeOld && subject.old ? asStored(subject, subject.old) : undefined;
  const stored = before && (await run(TOGETHER[subject.kind.kind], before, lookup, deadline));

  const decision = weigh(found, subject, () => (before ? [...alone(before), ...(stored?.findings ?? [])] : []));
  const problem = stored?.problem ?? (decision.refused.length === 0 ? together.problem : undefined);
  if (problem !== undefined) throw problem;
  return decision;
}

/** On update a mistake that the stored object has too is no reason to refuse a label, a block or a budget (DESIGN 5). */
function weigh(
  found: ReadonlyArray<Finding>,
  { object, old, dryRun }: Subject,
  stored: () => ReadonlyArray<Finding>,
): Decision {
  const refuses = ({ effect }: Finding) => effect === 'refuse' || (effect === 'refuse-unless-dry-run' && !dryRun);
  const candidates = found.filter(refuses);
  if (candidates.length === 0) return { refused: [], warned: found };
  const known = new Set(stored().map((finding) => identityOf(finding, old?.spec)));
  const refused = new Set(candidates.filter((finding) => !known.has(identityOf(finding, object.spec))));
  return { refused: [...refused], warned: found.filter((finding) => !refused.has(finding)) };
}

function alone(subject: Subject): ReadonlyArray<Finding> {
  return ALONE[subject.kind.kind].flatMap((check: AloneCheck) => check(subject));
}

/** The stored object as if it were applied now: what is found then was there before. */
const asStored = (subject: Subject, old: Draft): Subject => ({ ...subject, object: old, old: undefined });

/** All at once, told in the order of the chain; a check that fails or is late leaves a problem instead of findings. */
async function run(checks: ReadonlyArray<Check>, subject: Subject, lookup: Lookup, deadline: Deadline) {
  const outcomes = await Promise.all(
    checks.map((check) =>
      Promise.race([check(subject, lookup), deadline]).catch(
        (cause: unknown) => new Undecided(whyOf(cause), { cause }),
      ),
    ),
  );
  const findings = outcomes.flatMap((outcome) => (Array.isArray(outcome) ? (outcome as Finding[]) : []));
  const failed = outcomes.find((outcome) => outcome instanceof Undecided);
  const late = outcomes.includes('late') ? new Undecided('the cluster did not answer in time') : undefined;
  return { findings, problem: failed ?? late };
}

const whyOf = (cause: unknown): string =>
  `what the object refers to could not be looked up: ${cause instanceof Error ? cause.message : String(cause)}`;
