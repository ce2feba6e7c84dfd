// Is the object let in, with which warnings, or refused, and why?
import type { Finding } from '#core/finding.ts';
import { reasonOf } from '#core/reason.ts';
import type { Check, Found } from './check.ts';
import { ALONE, TOGETHER } from './checks.ts';
import type { Countdown } from './deadline.ts';
import type { Lookup } from './lookup.ts';
import { identityOf } from './place.ts';
import type { Draft, Subject } from './subject.ts';

export interface Decision {
  readonly refused: ReadonlyArray<Finding>;
  readonly warned: ReadonlyArray<Finding>;
}

/** /mutate: what the object shows alone. Its warnings are told by /validate, which judges again. */
export async function decideAlone(subject: Subject): Promise<Decision> {
  const found = await alone(subject);
  const { old } = subject;
  const stored = old && found.length > 0 ? await alone(asStored(subject, old)) : [];
  return { refused: weigh(found, subject, stored).refused, warned: [] };
}

/** Judging was not possible: the cluster did not answer, or not in time. Our fault, not the object's. */
export class Undecided extends Error {
  override readonly name = 'Undecided';
}

/** /validate: everything, with what the object refers to. Throws `Undecided` when what could be found out does not refuse. */
export async function decide(subject: Subject, lookup: Lookup, countdown: Countdown): Promise<Decision> {
  const own = await alone(subject);
  const together = await run(TOGETHER[subject.kind.kind], subject, lookup, countdown);
  const found = [...own, ...together.findings];
  const mayBeOld = subject.old !== undefined && found.some((finding) => finding.effect !== 'warn');
  const before = mayBeOld && subject.old ? asStored(subject, subject.old) : undefined;
  const stored = before && (await run(TOGETHER[subject.kind.kind], before, lookup, countdown));

  const known = before ? [...(await alone(before)), ...(stored?.findings ?? [])] : [];
  const decision = weigh(found, subject, known);
  const problem = stored?.problem ?? (decision.refused.length === 0 ? together.problem : undefined);
  if (problem !== undefined) throw problem;
  return decision;
}

/** On update a mistake that the stored object has too is no reason to refuse a label, a block or a budget (DESIGN 5). */
function weigh(
  found: ReadonlyArray<Finding>,
  { object, old, dryRun }: Subject,
  stored: ReadonlyArray<Finding>,
): Decision {
  const refuses = ({ effect }: Finding) => effect === 'refuse' || (effect === 'refuse-unless-dry-run' && !dryRun);
  const candidates = found.filter(refuses);
  if (candidates.length === 0) return { refused: [], warned: found };
  const known = new Set(stored.map((finding) => identityOf(finding, old?.spec)));
  const refused = new Set(candidates.filter((finding) => !known.has(identityOf(finding, object.spec))));
  return { refused: [...refused], warned: found.filter((finding) => !refused.has(finding)) };
}

async function alone(subject: Subject): Promise<ReadonlyArray<Finding>> {
  const found = ALONE[subject.kind.kind].map((check) => check(subject));
  return (found.some(isPending) ? await Promise.all(found) : (found as ReadonlyArray<Finding>[])).flat();
}

/** The stored object as if it were applied now: what is found then was there before. */
const asStored = (subject: Subject, old: Draft): Subject => ({ ...subject, object: old, old: undefined });

interface Outcome {
  readonly findings: ReadonlyArray<Finding>;
  readonly problem: Undecided | undefined;
}

/** All at once, told in the order of the chain; a check that fails or is late leaves a problem instead of findings. */
async function run(
  checks: ReadonlyArray<Check>,
  subject: Subject,
  lookup: Lookup,
  countdown: Countdown,
): Promise<Outcome> {
  const found = checks.map((check) => attempt(check, subject, lookup));
  // Only who asks somebody can be late.
  const answers = found.some(isPending) ? await inTime(found, countdown) : (found as ReadonlyArray<Answer>);
  const failed = answers.find((answer) => answer instanceof Undecided);
  const late = answers.includes(undefined) ? new Undecided('the cluster did not answer in time') : undefined;
  return { findings: answers.flatMap((answer) => (Array.isArray(answer) ? answer : [])), problem: failed ?? late };
}

/** Undefined: not answered in time. */
type Answer = ReadonlyArray<Finding> | Undecided | undefined;

/** Every answer, or those that came before it was late. */
function inTime(found: ReadonlyArray<Found | Undecided>, countdown: Countdown): Promise<ReadonlyArray<Answer>> {
  return new Promise((resolve) => {
    const answers = found.map((one): Answer => (isPending(one) ? undefined : one));
    let waiting = 0;
    for (const [place, one] of found.entries()) {
      if (!isPending(one)) continue;
      waiting += 1;
      const settle = (answer: Answer) => {
        answers[place] = answer;
        waiting -= 1;
        if (waiting === 0) resolve(answers);
      };
      one.then(settle, (cause) => settle(undecided(cause)));
    }
    countdown.late().then(() => resolve([...answers]));
  });
}

function attempt(check: Check, subject: Subject, lookup: Lookup): Found | Undecided {
  try {
    return check(subject, lookup);
  } catch (cause) {
    return undecided(cause);
  }
}

const isPending = (found: Found | Undecided): found is Promise<ReadonlyArray<Finding>> => found instanceof Promise;

const undecided = (cause: unknown): Undecided =>
  new Undecided(`what the object refers to could not be looked up: ${reasonOf(cause)}`, { cause });
