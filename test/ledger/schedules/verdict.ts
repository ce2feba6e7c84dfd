// The verdict at rest: requests against what clients saw, scopes against their entries, headroom by holds.
import type { Entry } from '#core/ports/books.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import { spendWindow } from '#core/window.ts';
import type { Course, Request } from './course.ts';

const WHOLE_KINDS = /^(settled|expired|correction expired)$/;

/** Violations as sentences; empty: all is right. `calm` lets time pass without faults. */
export async function verify(course: Course, calm: (millis: Millis) => Promise<void>): Promise<string[]> {
  const { requests } = course;
  const waiting = requests.filter(
    ({ stage, gateway }) => /^(new|asked|ending)$/.test(stage) && gateway?.isDead === false,
  );
  return [
    ...waiting.map(({ name, stage }) => `${name} is still ${stage}`),
    ...requests.flatMap((request) => verifyRequest(course, request)),
    ...verifyKinds(course),
    ...(await verifyScopes(course)),
    ...(await verifyHeadroom(course, calm)),
  ];
}

const entriesOf = ({ shared }: Course, { name }: Request): ReadonlyArray<Entry> =>
  shared.database.entries().filter(({ model }) => model === name);
const sum = (entries: ReadonlyArray<{ readonly cost: bigint }>): bigint =>
  entries.reduce((all, { cost }) => all + cost, 0n);

/** The range of allowed charges. */
function boundsOf(course: Course, request: Request): readonly [bigint, bigint] {
  const { amount, cost, known, stage, gateway } = request;
  const { struck, vanished } = course;
  const isForgetful = struck.has('wipe') || struck.has('restore');
  const isGone = gateway !== undefined && vanished.has(gateway);
  const hasDied = gateway?.isDead === true;
  const least = known ?? amount;
  // The disk and the store were lost together, or the disk alone before the store knew the end.
  const lost = isForgetful ? 0n : known === undefined || known > cost ? cost : known;
  if (stage === 'settled') return isGone ? [lost, amount] : [cost, cost];
  // Both knew the release; then the store went back to before it, and the process died before it detected that.
  const isUndone = hasDied && struck.has('restore');
  if (stage === 'released') return isGone || isUndone ? [0n, amount] : [0n, 0n];
  if (stage === 'ending') return [0n, amount];
  if (stage === 'held') return [isGone && isForgetful ? 0n : least < amount ? least : amount, amount];
  if (stage === 'refused' || stage === 'new') return [0n, 0n];
  // The client never learned of the hold.
  return [0n, hasDied ? amount : 0n];
}

function verifyRequest(course: Course, request: Request): string[] {
  const charged = sum(entriesOf(course, request));
  const [least, most] = boundsOf(course, request);
  if (least <= charged && charged <= most) return [];
  return [`${request.name} was ${request.stage} and charged ${charged}, which is not between ${least} and ${most}`];
}

function verifyKinds({ shared }: Course): string[] {
  const byId = Map.groupBy(shared.database.entries(), ({ id }) => id);
  return [...byId].flatMap(([, entries]) => {
    const kinds = entries
      .map(({ kind }) => kind)
      .sort()
      .join(' ');
    return WHOLE_KINDS.test(kinds) ? [] : [`${entries[0]?.model} was booked as ${kinds}`];
  });
}

const isBooked = ({ shared }: Course, of: string, kind: string): boolean =>
  shared.database.entries().some((entry) => entry.id === of && (entry.kind === kind || entry.kind === 'correction'));

const windowOf = ({ shared }: Course, scope: ScopePolicy) => ({
  scopeId: scope.scopeId,
  window: spendWindow(scope, shared.stage.now()),
});

async function verifyScopes(course: Course): Promise<string[]> {
  const { shared, scopes, scene } = course;
  const counters = scopes.map((scope) => windowOf(course, scope));
  const sums = await shared.database.books.sums(counters);
  const survey = await shared.store.store.survey(counters);
  return scopes.flatMap(({ scopeId }, at) => {
    const wrong: string[] = [];
    const paid = sum(shared.database.entries().filter(({ charges }) => charges.some((of) => of.scopeId === scopeId)));
    const { spent, parts } = survey.counters[at] ?? { spent: undefined, parts: [] };
    if (sums[at]?.spent !== paid) wrong.push(`${scopeId}: entries are ${paid}, their sum is ${sums[at]?.spent}`);
    const unbooked = parts.filter(({ id, kind }) => !isBooked(course, id, kind));
    if (unbooked.length > 0) wrong.push(`${scopeId}: ${unbooked.map(({ kind }) => kind)} were never booked`);
    if (spent !== undefined && spent !== paid)
      wrong.push(`${scopeId}: the counter shows ${spent}, entries are ${paid}`);
    const allowed = (scene.limits[at] ?? 0n) + allowanceOf(course, at);
    if (paid > allowed) wrong.push(`${scopeId}: ${paid} were spent of ${scene.limits[at]} (${allowed} at most)`);
    return wrong;
  });
}

/** The allowed excess of a limit: holds of processes that slept through a rebuild, and holds that an old store admitted undetected. */
function allowanceOf(course: Course, scope: number): bigint {
  const { requests, slept, admittedStale } = course;
  const excused = requests.filter((request) => {
    const { scopes, gateway, known } = request;
    if (!scopes.includes(scope)) return false;
    // The expiry was charged at the known cost, and the settlement came later.
    const isLate = known !== undefined && entriesOf(course, request).length > 1;
    return isLate || admittedStale.has(request) || (gateway !== undefined && slept.has(gateway.id));
  });
  return excused.reduce((all, { amount }) => all + amount, 0n);
}

/** Checks that exactly the unspent rest can be held. */
async function verifyHeadroom(course: Course, calm: (millis: Millis) => Promise<void>): Promise<string[]> {
  const { scopes, shared, scene } = course;
  const gateway = course.gateways.find(({ isDead }) => !isDead);
  if (gateway === undefined) return ['no process lives'];
  const wrong: string[] = [];
  for (const [at, scope] of scopes.entries()) {
    const [spend] = await shared.database.books.sums([windowOf(course, scope)]);
    const left = (scene.limits[at] ?? 0n) - (spend?.spent ?? 0n);
    if (left <= 0n) continue;
    const tried: string[] = [];
    for (const amount of [left + 1n, left]) {
      const asked = gateway.ledger.hold({
        scopes: [scope],
        amount,
        minAmount: amount,
        model: 'last',
        identifier: 'entry',
      });
      void asked.then((result) => {
        tried.push(result.ok ? 'held' : result.failure.reason);
        if (result.ok) void gateway.ledger.release(result.value);
      });
      await calm(2500);
    }
    if (tried.join() !== 'exceeded,held')
      wrong.push(`${scope.scopeId}: of ${left} that are left, one more was ${tried}`);
  }
  return wrong;
}
