// Verification of the money after faults: completed replies against entries, sums and counters, to the nano-dollar.
import { setTimeout as pause } from 'node:timers/promises';
import { parseMoney } from '#core/money.ts';
import { eventually } from '../../eventually.ts';
import { type Harness, PRICE } from './harness.ts';
import type { Seen } from './load.ts';

export interface Verified {
  readonly statuses: Readonly<Record<string, number>>;
  readonly completed: number;
  /** Milliseconds of the slowest refusal. */
  readonly slowest: number;
  /** Refusals that took longer than a second: allowed only while a store is rebuilt. */
  readonly late: number;
  /** Violations as sentences; empty: all is right. */
  readonly wrong: ReadonlyArray<string>;
}

/** More than any request here can hold: a token per byte of its text, and 40 tokens of output. */
const MOST_HELD = 200n * PRICE.input + 40n * PRICE.output;
/** Violations as sentences, when nothing is in flight; empty: all is right. */
export async function verify(harness: Harness, seen: ReadonlyArray<Seen>): Promise<Verified> {
  const wrong: string[] = [];
  const { charged, charges } = await settled(harness);
  const { spent, problems } = await (harness.kind === 'memory' ? askForCounters(harness) : compareCounters(harness));
  wrong.push(...problems);
  const billed = costOf(harness);
  for (const key of harness.keys) {
    const own = seen.filter((one) => one.key === key);
    const whole = own.reduce((all, { completed }) => all + (completed === undefined ? 0n : billed(completed)), 0n);
    const doubtful = BigInt(own.filter(({ isSuspect }) => isSuspect).length) * MOST_HELD;
    const paid = charged.get(key.scopeId) ?? 0n;
    if (paid < whole) wrong.push(`${whole - paid} nano-dollars of completed replies were not charged`);
    if (paid > whole + doubtful) wrong.push(`${paid - whole - doubtful} nano-dollars too much were charged`);
    if (paid > key.limit + doubtful) wrong.push(`a limit of ${key.limit} was exceeded: ${paid}`);
    if ((charges.get(key.scopeId) ?? 0n) !== paid)
      wrong.push(`entries are ${paid}, their charges are ${charges.get(key.scopeId)}`);
    if (spent.get(key.scopeId) !== paid)
      wrong.push(`entries are ${paid}, their sum or counter is ${spent.get(key.scopeId)}`);
  }
  wrong.push(...(await twice(harness)));
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

const BY_ENTRY = `select scope_id, sum(cost)::text as cost from gateway_operator.entry, unnest(scope_ids) as scope_id
  group by scope_id order by scope_id`;
const BY_CHARGE = `select scope_id, sum(cost)::text as cost from gateway_operator.charge group by scope_id order by scope_id`;

/** The spend of each scope by its entries and by its charges, when nothing is in flight. */
async function settled({ postgres, connection }: Harness) {
  const read = async (text: string): Promise<ReadonlyMap<string, bigint>> => {
    const rows = await postgres.query<{ scope_id: string; cost: string }>(connection, text);
    return new Map(rows.map(({ scope_id, cost }) => [scope_id, BigInt(cost)]));
  };
  let before = '';
  return eventually(
    async () => {
      await pause(1500);
      return { charged: await read(BY_ENTRY), charges: await read(BY_CHARGE) };
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

/** Counters of a memory store, read through the spend of a key: there is no other access. */
async function askForCounters({ gateways, keys }: Harness) {
  const spends = keys.map(async ({ value, scopeId }) => {
    const answer = await fetch(`${gateways[0]?.url}/key`, { headers: { authorization: `Bearer ${value}` } });
    const { currentSpend } = (await answer.json()) as { currentSpend: string };
    return [scopeId, parseMoney(currentSpend)] as const;
  });
  return { spent: new Map(await Promise.all(spends)), problems: [] };
}

/** Compares PostgreSQL's sums with the store's counters, and reports differences. */
async function compareCounters({ store, database, keys }: Harness) {
  const { counters } = await store.loaded(0, 100);
  const sums = await database.sums(counters);
  const survey = await store.survey(counters);
  const problems = sums.flatMap((sum, at) => {
    const { spent, parts } = survey.counters[at] ?? { spent: undefined, parts: [] };
    const expected = sum.spent + parts.reduce((all, { cost }) => all + cost, 0n);
    return spent === expected
      ? []
      : [`a counter shows ${spent}, its entries ${sum.spent} and ${expected - sum.spent} unbooked`];
  });
  const loaded = keys.filter(({ scopeId }) => counters.some((counter) => counter.scopeId === scopeId));
  if (loaded.length < keys.length) problems.push('a counter is missing');
  return { spent: new Map(sums.map(({ scopeId, spent }) => [scopeId, spent])), problems };
}

/** The allowed entries of a request: one settlement, or an expiry and its correction. */
async function twice({ postgres, connection }: Harness): Promise<string[]> {
  const rows = await postgres.query<{ id: string; kinds: string }>(
    connection,
    `select id, string_agg(kind, ' ' order by kind) as kinds from gateway_operator.entry group by id
     having count(*) > 1 and string_agg(kind, ' ' order by kind) <> 'correction expired'`,
  );
  return rows.map(({ id, kinds }) => `${id} was booked as ${kinds}`);
}
