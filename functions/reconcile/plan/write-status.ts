// What of a status has changed, and how is that written?
import { type Judgement, toConditions, toTimestamp } from '#core/conditions.ts';
import { toProblem } from '#core/finding.ts';
import type { Violation } from '#crds/violation.ts';
import type { Action, StatusPatch } from '../action.ts';
import type { Problem } from '../problem.ts';
import { idOf, type OwnObject } from '../world.ts';
import { about } from './about.ts';
import { type NewKey, planEvents } from './events.ts';
import type { Outlook } from './outlook.ts';
import { sameJson } from './policies.ts';

interface Shown {
  /** In place of a key's value how it is shown. */
  readonly shows?: StatusPatch['keyValue'];
  /** What is told of a value that another has replaced in time. */
  readonly newKey?: NewKey | undefined;
}

/** Only what changed, with its events. `lastSyncTime` changes only along with something else. */
export function writeStatus(
  object: Pick<OwnObject, 'kind' | 'metadata' | 'status'>,
  after: Readonly<Record<string, unknown>> & object,
  outlook: Outlook,
  { shows, newKey }: Shown = {},
): Action[] {
  const before: Readonly<Record<string, unknown>> = object.status ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => !sameJson(before[name], after[name]));
  if (changed.length === 0) return [];
  const plain = changed.filter((name) => name !== 'keyValue');
  const members = {
    ...Object.fromEntries(plain.map((name) => [name, after[name] ?? null])),
    ...(object.kind === 'VirtualKey' ? { lastSyncTime: toTimestamp(outlook.now) } : {}),
    ...(changed.includes('keyValue') && after.keyValue === undefined ? { keyValue: null } : {}),
  };
  const isShown = changed.includes('keyValue') && after.keyValue !== undefined && shows !== undefined;
  const patch: StatusPatch = isShown ? { members, keyValue: shows } : { members };
  const why = `its ${changed.join(', ')} changed`;
  return [{ action: 'WriteStatus', ...about(object, why), patch }, ...planEvents(object, after, newKey)];
}

/** Conditions that keep their transition times, and the generation that was judged. */
export function observed(
  object: Pick<OwnObject, 'kind' | 'metadata' | 'status'>,
  judged: ReadonlyArray<Judgement>,
  { now, world }: Outlook,
  /** Types that are ours and go when they are not judged. */
  passing: ReadonlyArray<string> = [],
) {
  const { generation } = object.metadata;
  const all = [...judged, ...judgeSpec(world.mistakes.get(idOf(object.kind, object.metadata)) ?? [])];
  const before = (object.status?.conditions ?? []).filter(
    ({ type }) => ![SPEC_VALID, ...passing].includes(type) || all.some((judgement) => judgement.type === type),
  );
  return {
    conditions: toConditions(all, before, { generation, now }),
    observedGeneration: generation,
  };
}

const SPEC_VALID = 'SpecValid';

/**
 * The rules about the spec alone, which an older CRD, or a cluster without CEL, did not ask. What breaks one of them goes on
 * working as far as it can; where nothing is wrong there is no such condition.
 */
function judgeSpec(mistakes: ReadonlyArray<Violation>): ReadonlyArray<Judgement> {
  const problem = toProblem(mistakes);
  return problem === undefined ? [] : [{ type: SPEC_VALID, status: 'False', ...problem }];
}

export const toReady = (problem: Problem | undefined): Judgement =>
  problem === undefined
    ? { type: 'Ready', status: 'True', reason: 'Ready', message: 'works' }
    : { type: 'Ready', status: 'False', reason: problem.reason, message: problem.message };

/** A member that is there only when it has a value. */
export const optional = <Name extends string, T>(name: Name, value: T | undefined): { readonly [N in Name]?: T } =>
  (value === undefined ? {} : { [name]: value }) as { readonly [N in Name]?: T };
