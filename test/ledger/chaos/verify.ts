// Verification of the money after faults: completed replies against ledger rows, sums and counters, to the nano-dollar.

import { setTimeout as pause } from 'node:timers/promises';
import { parseMoney } from '#core/money/money.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_STORE } from '../../support/one-store.ts';
import { type Harness, PRICE } from './harness.ts';
import type { ClientReply } from './load.ts';

export interface Verification {
  readonly statuses: Readonly<Record<string, number>>;
  readonly completed: number;
  /** Milliseconds of the slowest refusal. */
  readonly slowest: number;
  /** Refusals that took longer than a second: allowed only while a store is rebuilt. */
  readonly late: number;
  /** Violations as sentences; empty: all is right. */
  readonly wrong: ReadonlyArray<string>;
}

/** More than any request here can reserve: a token per byte of its text, and 40 tokens of output. */
export const MAX_RESERVATION = 200n * PRICE.input + 40n * PRICE.output;
/**
 * Ledger rows of an id that are right: the settlement of a request; or the charge of an account, taken back by its
 * process. A Worker has no disk, and takes nothing back.
 */
const KINDS = { process: ['settled', 'correction expired'], Worker: ['settled', 'expired'] };

/** Violations as sentences, when nothing is in flight; empty: all is right. */
export async function verify(
  harness: Harness,
  seen: ReadonlyArray<ClientReply>,
  by: keyof typeof KINDS = 'process',
): Promise<Verification> {
  const wrong = harness.kind === 'memory' ? [] : await untilRest(harness);
  const { charged, hours } = await settled(harness);
  const { spent, problems } = await (harness.kind === 'memory' ? askForCounters(harness) : compareCounters(harness));
  wrong.push(...problems);
  const billed = costOf(harness);
  for (const key of harness.keys) {
    const own = seen.filter((one) => one.key === key);
    const whole = own.reduce((all, { completed }) => all + (completed === undefined ? 0n : billed(completed)), 0n);
    const doubtful = BigInt(own.filter(({ isSuspect }) => isSuspect).length) * MAX_RESERVATION;
    const cost = charged.get(key.scopeId) ?? 0n;
    if (cost < whole) wrong.push(`${whole - cost} nano-dollars of completed replies were not charged`);
    if (cost > whole + doubtful) wrong.push(`${cost - whole - doubtful} nano-dollars too much were charged`);
    if (cost > key.limit + doubtful) wrong.push(`a limit of ${key.limit} was exceeded: ${cost}`);
    if ((hours.get(key.scopeId) ?? 0n) !== cost)
      wrong.push(`ledger rows are ${cost}, their sums by hour are ${hours.get(key.scopeId)}`);
    if (spent.get(key.scopeId) !== cost)
      wrong.push(`ledger rows are ${cost}, their sum or counter is ${spent.get(key.scopeId)}`);
  }
  wrong.push(...(await unexpectedRows(harness, KINDS[by])));
  const statuses: Record<string, number> = {};
  for (const { status, code } of seen) {
    const name = `${status ?? 'no answer'} ${code ?? ''}`.trim();
    statuses[name] = (statuses[name] ?? 0) + 1;
  }
  const allowed = /^(200|no answer|429 budget_(held|exceeded)|503 ledger_unavailable)$/;
  wrong.push(...Object.keys(statuses).flatMap((name) => (allowed.test(name) ? [] : [`clients got ${name}`])));
  const refused = seen.filter(({ status }) => status === 503).map(({ took }) => took);
  const completed = seen.filter((one) => one.completed !== undefined).length;
  const late = refused.filter((took) => took > 1000).length;
  return { wrong, statuses, completed, slowest: Math.round(Math.max(0, ...refused)), late };
}

const costOf =
  ({ upstream }: Harness) =>
  (id: string): bigint => {
    const size = upstream.reported.get(id);
    return size === undefined ? 0n : BigInt(size.input) * PRICE.input + BigInt(size.output) * PRICE.output;
  };

export const BY_LEDGER_ROW = `select scope_id, sum(cost)::text as cost
  from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id, unnest(scope_ids) as scope_id
  group by scope_id order by scope_id`;
const BY_HOUR = `select scope_id, sum(amount)::text as cost from gateway_operator.hour_sum group by scope_id order by scope_id`;

/** The spend of each scope by its ledger rows and by its sums of hours, when nothing is in flight. */
async function settled({ postgres, connection }: Harness) {
  const read = async (text: string): Promise<ReadonlyMap<string, bigint>> => {
    const rows = await postgres.query<{ scope_id: string; cost: string }>(connection, text);
    return new Map(rows.map(({ scope_id, cost }) => [scope_id, BigInt(cost)]));
  };
  let before = '';
  return eventually(
    async () => {
      await pause(1500);
      return { charged: await read(BY_LEDGER_ROW), hours: await read(BY_HOUR) };
    },
    ({ charged }) => {
      const now = [...charged].join();
      const same = now === before;
      before = now;
      return same;
    },
    30_000,
  );
}

/**
 * The spend of keys as a gateway reports it; absent counters are loaded. There is no other access to a store in memory.
 */
async function askForCounters({ gateways, keys }: Harness) {
  const spends = keys.map(async ({ value, scopeId }) => {
    const answer = await fetch(`${gateways[0]?.url}/key`, { headers: { authorization: `Bearer ${value}` } });
    const { currentSpend } = (await answer.json()) as { currentSpend: string };
    return [scopeId, parseMoney(currentSpend)] as const;
  });
  return { spent: new Map(await Promise.all(spends)), problems: [] };
}

/** Compares PostgreSQL's sums with the store's counters by an audit. */
async function compareCounters(harness: Harness) {
  const { counterStore, ledgerDatabase, database, keys, instanceUid } = harness;
  const problems: string[] = [];
  // A counter that nobody has asked for since the last rebuild is absent.
  await askForCounters(harness);
  const { epoch, storeCalls: storeCallsBefore } = await database.epochs(instanceUid, ONE_STORE).state();
  const { counters } = await counterStore.loaded(0, 100);
  const sums = await ledgerDatabase.sums(counters);
  const known = (await counterStore.accounts(false, 100)).map(({ account }) => account);
  const audit = async (ids: ReadonlyArray<string>) =>
    counterStore.audit(epoch, sums, await ledgerDatabase.accountRows(ids), {
      storeCallsBefore,
      deadline: Number.MAX_SAFE_INTEGER,
    });
  let audited = await audit(known);
  // Accounts that have just ended are not in the list.
  if (audited.outcome === 'done') audited = await audit([...known, ...audited.changedAccounts]);
  if (audited.outcome === 'epoch') problems.push(`the store is in epoch ${audited.epoch}, PostgreSQL in ${epoch}`);
  else {
    problems.push(...audited.differences.map(({ by }) => `a counter shows ${by} less than its ledger rows`));
    problems.push(...audited.changedAccounts.map((account) => `PostgreSQL does not know what ${account} has`));
  }
  const loaded = keys.filter(({ scopeId }) => counters.some((counter) => counter.scopeId === scopeId));
  if (loaded.length < keys.length) problems.push('a counter is missing');
  return { spent: new Map(sums.map(({ scopeId, spent }) => [scopeId, spent])), problems };
}

/**
 * Waits until idle escrow has gone back, everything is booked, and requests that died with their Worker are charged,
 * after their lease.
 */
const untilRest = (harness: Harness): Promise<string[]> =>
  eventually(
    () => unfinishedWork(harness),
    (left) => left.length === 0,
    40_000,
  ).catch(() => unfinishedWork(harness));

/** What is not finished, as sentences: without requests, only empty accounts of running gateways are left. */
async function unfinishedWork({ counterStore, gateways }: Harness): Promise<string[]> {
  const { counters } = await counterStore.loaded(0, 100);
  const reserved = (await counterStore.read(counters)).filter((counter) => counter?.escrowOfAll !== 0n);
  const known = await counterStore.accounts(false, 100);
  const unbooked = known.filter((account) => account.unbookedBatch > 0);
  return [
    ...reserved.map((counter) => `${counter?.escrowOfAll} nano-dollars are reserved`),
    ...unbooked.map(({ account }) => `${account} has an unbooked batch`),
    ...(known.length > gateways.length ? [`${gateways.length} gateways have ${known.length} accounts`] : []),
  ];
}

async function unexpectedRows({ postgres, connection }: Harness, right: ReadonlyArray<string>): Promise<string[]> {
  const rows = await postgres.query<{ id: string; kinds: string }>(
    connection,
    `select id, string_agg(kind, ' ' order by kind) as kinds from gateway_operator.ledger_row group by id`,
  );
  return rows.flatMap(({ id, kinds }) => (right.includes(kinds) ? [] : [`${id} was booked as ${kinds}`]));
}
