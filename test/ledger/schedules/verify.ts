// The verification at rest: requests against what clients saw, counters against their ledger rows, accounts that are
// left, headroom by reservations.

import { spendWindow } from '#core/money/window.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ScopePolicy, ScopeWindow } from '#core/ports/policy.ts';
import { counterKey } from '#core/ports/policy.ts';
import {
  costOf,
  type Execution,
  type Fault,
  hasReservation,
  isWritten,
  type Request,
  sizeOf,
  streamedCostOf,
} from './execution.ts';
import { allowanceOf, minOf } from './exposure.ts';
import type { Gateway } from './gateway.ts';

/**
 * Faults after which an audit may find what to repair: an old snapshot; an account that its process closed with the
 * store away.
 */
const REPAIRED: ReadonlyArray<Fault> = ['restore', 'stop'];

/** Faults after which the store may have no account of a process that stops. */
const UNREPORTED: ReadonlyArray<Fault> = ['hang', 'wipe', 'restore'];

/** Violations as sentences; empty: all is right. `calm` lets time pass without faults. */
export async function verify(execution: Execution, calm: (millis: Millis) => Promise<void>): Promise<string[]> {
  const { requests, wrong } = execution;
  const waiting = requests.filter(
    ({ state, gateway }) => /^(new|asked|growing|ending)$/.test(state) && gateway?.isDead === false,
  );
  // A stop with the store away books what it cannot report. A store that has no account of that process learns of it by
  // the audit of all counters.
  if (execution.faultCounts.has('stop') && UNREPORTED.some((fault) => execution.faultCounts.has(fault))) {
    void livingOf(execution)
      ?.ledger.maintain()
      .catch(() => undefined);
    await calm(3000);
  }
  return [
    ...wrong,
    ...waiting.map(({ name, state }) => `${name} is still ${state}`),
    ...requests.flatMap((request) => verifyRequest(execution, request)),
    ...verifyExpiredRows(execution, await expiredRowsOf(execution)),
    ...(await verifyCounters(execution)),
    ...(await verifyAccounts(execution)),
    ...(await verifyHeadroom(execution, calm)),
    ...(await verifyAudit(execution, calm)),
  ];
}

const rowsOf = ({ shared }: Execution, { name }: Request): ReadonlyArray<LedgerRow> =>
  shared.database.ledgerRows().filter(({ model }) => model === name);
const sum = (costs: ReadonlyArray<{ readonly cost: bigint }>): bigint =>
  costs.reduce((all, { cost }) => all + cost, 0n);
const isGone = ({ vanished }: Execution, { gateway }: Request): boolean =>
  gateway !== undefined && vanished.has(gateway);

/** The costs that the ledger row of the request may have; undefined: there may be no row. */
function allowedCosts(request: Request): ReadonlyArray<bigint | undefined> {
  const { state, gateway, end, grow = 0n } = request;
  const [cost, size, known] = [costOf(request), sizeOf(request), streamedCostOf(request)];
  // Its client does not know yet whether it has grown.
  const sizes = state === 'growing' ? [size, size + grow] : [size];
  const unsettled = known === undefined ? sizes : [known, ...sizes];
  if (state === 'settled') return [cost];
  const isDead = gateway?.isDead === true;
  // The reservation is not waited for on disk: a reply that never completed is charged nothing.
  if (hasReservation(request)) return isDead && !isWritten(request) ? [undefined] : unsettled;
  if (state === 'ending') return end === 'release' ? [undefined, ...unsettled] : [cost, ...unsettled, undefined];
  // The client never learned of the reservation, which was in the journal.
  return state === 'asked' && isDead ? [undefined, ...unsettled] : [undefined];
}

function verifyRequest(execution: Execution, request: Request): string[] {
  const rows = rowsOf(execution, request);
  const isRight =
    rows.length === 0
      ? isGone(execution, request) || allowedCosts(request).includes(undefined)
      : rows.length === 1 && rows[0]?.kind === 'settled' && allowedCosts(request).includes(rows[0].cost);
  const found = rows.map(({ kind, cost }) => `${kind} ${cost}`);
  return isRight ? [] : [`${request.name} was ${request.state} and booked as [${found}]`];
}

/** Expired rows that nobody has corrected, by process. */
async function expiredRowsOf({ shared }: Execution) {
  const { owners, database } = shared;
  const all = [...owners].map(async ([account, process]) => {
    const rows = await database.database.uncorrectedRows([account]);
    return rows.map((row) => ({ ...row, process }));
  });
  return (await Promise.all(all)).flat();
}

/** Only those stay whose process and disk are gone, and they are what its requests may have cost. */
function verifyExpiredRows(execution: Execution, expiredRows: Awaited<ReturnType<typeof expiredRowsOf>>): string[] {
  const left = expiredRows.filter(
    ({ process }) => ![...execution.vanished].some((vanished: unknown) => vanished === process),
  );
  const wrong = left.map(
    ({ process, scopeId, spent }) => `${process.name} was charged ${spent} in ${scopeId} for good`,
  );
  const hasLostData = execution.faultCounts.has('wipe') || execution.faultCounts.has('restore');
  const counters = new Map<string, ScopeWindow>();
  for (const row of [
    ...expiredRows,
    ...execution.requests.flatMap(({ reservation }) => reservation?.scopeWindows ?? []),
  ])
    counters.set(counterKey(row), { scopeId: row.scopeId, window: row.window });
  for (const [key, { scopeId }] of counters) {
    const charged = sum(expiredRows.flatMap((one) => (counterKey(one) === key ? [{ cost: one.spent }] : [])));
    let [min, max] = [0n, 0n];
    for (const request of execution.requests) {
      const { reservation, scopes, state, grow = 0n, grown, isUnguaranteed } = request;
      const isIn = reservation
        ? reservation.scopeWindows.some((of) => counterKey(of) === key)
        : scopes.some((of) => scopeId === `scope-${of}`);
      if (!isIn || !isGone(execution, request) || rowsOf(execution, request).length > 0) continue;
      const [size, cost, known] = [sizeOf(request), costOf(request), streamedCostOf(request)];
      // Growth that its client was refused may have been granted in the store.
      const asked = state === 'growing' || grown === 0n ? grow : 0n;
      max += state === 'new' ? 0n : (size > cost ? size : cost) + asked;
      if (hasLostData || isUnguaranteed) continue;
      if (state === 'settled') min += minOf(known ?? cost, cost);
      if (hasReservation(request) && execution.faultCounts.has('full')) min += known ?? size;
    }
    if (charged < min || charged > max)
      wrong.push(`${scopeId}: ${charged} were charged for dead processes, which is not between ${min} and ${max}`);
  }
  return wrong;
}

async function verifyCounters(execution: Execution): Promise<string[]> {
  const { shared, scopes, scenario } = execution;
  const rows = shared.database.ledgerRows();
  const counters = new Map(rows.flatMap(({ scopeWindows }) => scopeWindows.map((of) => [counterKey(of), of] as const)));
  for (const scope of scopes) counters.set(counterKey(counterOf(execution, scope)), counterOf(execution, scope));
  const all = [...counters.values()];
  const sums = await shared.database.database.sums(all);
  const shown = await shared.store.counterStore.read(all);
  return all.flatMap((of, at) => {
    const wrong: string[] = [];
    const counted = shared.database.countedSpend.get(counterKey(of)) ?? 0n;
    const ofRows = rows.filter(({ scopeWindows }) => scopeWindows.some((each) => counterKey(each) === counterKey(of)));
    const charged = counted + sum(ofRows);
    const { spent = charged, escrowOfAll = 0n } = shown[at] ?? {};
    if (sums[at]?.spent !== charged)
      wrong.push(`${of.scopeId}: ledger rows are ${charged}, their sum is ${sums[at]?.spent}`);
    if (spent !== charged) wrong.push(`${of.scopeId}: the counter shows ${spent}, ledger rows are ${charged}`);
    const isJoined =
      ofRows.length > 0 && scopes.some((one) => one.scopeId === of.scopeId && one.countedFrom !== undefined);
    if (isJoined && counted < (execution.spentBeforeJoin ?? 0n))
      wrong.push(`${of.scopeId}: ${counted} were counted of ${execution.spentBeforeJoin} that were spent before`);
    if (escrowOfAll !== 0n) wrong.push(`${of.scopeId}: ${escrowOfAll} are reserved for nothing`);
    const limit = scenario.limits[scopes.findIndex(({ scopeId }) => scopeId === of.scopeId)] ?? 0n;
    const allowed = (counted > limit ? counted : limit) + allowanceOf(execution, of);
    if (charged > allowed) wrong.push(`${of.scopeId}: ${charged} were spent of ${limit} (${allowed} at most)`);
    return wrong;
  });
}

const counterOf = ({ shared }: Execution, scope: ScopePolicy): ScopeWindow => ({
  scopeId: scope.scopeId,
  window: spendWindow(scope, shared.store.now()),
});

/** The store has one account for each living process at most, with nothing unbooked. */
async function verifyAccounts({ shared }: Execution): Promise<string[]> {
  const accounts = await shared.store.counterStore.accounts(false, 100);
  const owners = accounts.map(({ account }) => shared.owners.get(account));
  return [
    ...owners.flatMap((owner, at) => {
      if (owner === undefined || owner.isDead) return [`an account of ${owner?.name} is left`];
      return owners.indexOf(owner) < at ? [`${owner.name} has two accounts`] : [];
    }),
    ...accounts.flatMap(({ unbookedBatch, account }) =>
      unbookedBatch === 0 ? [] : [`batch ${unbookedBatch} of ${shared.owners.get(account)?.name} was never booked`],
    ),
  ];
}

/** Checks that exactly the unspent rest can be reserved. */
async function verifyHeadroom(execution: Execution, calm: (millis: Millis) => Promise<void>): Promise<string[]> {
  const { scopes, shared } = execution;
  const gateway = livingOf(execution);
  if (gateway === undefined) return ['no process lives'];
  const wrong: string[] = [];
  for (const scope of scopes) {
    if (scope.countedFrom !== undefined)
      await shared.database.database.countFirst([{ ...counterOf(execution, scope), from: scope.countedFrom }]);
    const [spend] = await shared.database.database.sums([counterOf(execution, scope)]);
    const left = BigInt(scope.budget?.limit ?? 0) - (spend?.spent ?? 0n);
    if (left <= 0n) continue;
    const results: string[] = [];
    for (const amount of [left + 1n, left]) {
      const request = { scopes: [scope], amount, minAmount: amount, model: 'last', identifier: 'entry' };
      void gateway.ledger.reserve(request).then((result) => {
        results.push(result.ok ? 'reserved' : result.failure.reason);
        if (result.ok) void gateway.ledger.release(result.value);
      });
      await calm(2500);
    }
    if (results.join() !== 'exceeded,reserved')
      wrong.push(`${scope.scopeId}: of ${left} that are left, one more was ${results}`);
  }
  return wrong;
}

const livingOf = ({ gateways }: Execution): Gateway | undefined => gateways.find(({ isDead }) => !isDead);

/**
 * An audit of all counters, and those of the whole schedule: if no fault excuses it, they found nothing to repair.
 */
async function verifyAudit(execution: Execution, calm: (millis: Millis) => Promise<void>): Promise<string[]> {
  const { metricCounts } = execution.shared;
  const found = (): number => metricCounts.get('gateway_operator_ledger_audit_differences_total') ?? 0;
  const before = found();
  let failure = 'the last audit did not end';
  void livingOf(execution)
    ?.ledger.maintain()
    .then(
      () => (failure = ''),
      (error) => (failure = `the last audit failed: ${error}`),
    );
  await calm(3000);
  const isExcused = REPAIRED.some((fault) => execution.faultCounts.has(fault));
  return [
    ...(failure === '' ? [] : [failure]),
    ...(found() > before ? ['the last audit had to repair a counter'] : []),
    ...(before > 0 && !isExcused ? ['an audit had to repair a counter'] : []),
  ];
}
