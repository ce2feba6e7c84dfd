// `npm run bench -- faults`: the chaos of test/ledger/chaos.world.test.ts with more seeds and for longer.

import { type Chaos, causeChaos } from '../ledger/chaos/chaos.ts';
import { type Gateway, type StoreKind, startHarness } from '../ledger/chaos/harness.ts';
import { type ClientReply, recovered, startLoad } from '../ledger/chaos/load.ts';
import { measureSettlementDelays, type SettlementDelays } from '../ledger/chaos/settlement-delay.ts';
import { observeFault, SINGLE_FAULTS } from '../ledger/chaos/single-faults.ts';
import { verify } from '../ledger/chaos/verify.ts';
import { startWorker } from '../ledger/chaos/worker.ts';
import { table } from './table.ts';

/**
 * The chaos runs. FAULT_SEEDS=1-20 (default 1-6), FAULT_SECONDS=60 (default 60) of faults each; odd seeds have one
 * gateway, even ones two.
 */
export async function benchFaults(): Promise<string> {
  const [first = 1, last = first] = (process.env.FAULT_SEEDS ?? '1-6').split('-').map(Number);
  const millis = Number(process.env.FAULT_SECONDS ?? 60) * 1000;
  const rows: string[][] = [];
  const wrong: string[] = [];
  const runs = Array.from({ length: last - first + 1 }, (_, at): Chaos => {
    const seed = first + at;
    return { seed, millis, gateways: 2 - (seed % 2) };
  });
  for (const chaos of runs) {
    const { faults, statuses, completed, slowest, late, wrong: violations } = await causeChaos(chaos);
    const answers = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`);
    rows.push([
      `${chaos.seed}`,
      `${chaos.gateways}`,
      `${faults.length}`,
      `${completed}`,
      `${slowest} ms`,
      `${late}`,
      answers.join(', '),
      `${violations.length}`,
    ]);
    wrong.push(...violations.map((each) => `seed ${chaos.seed}: ${each} (${faults.join(', ')})`));
  }
  if (wrong.length > 0) process.exitCode = 1;
  const head = ['seed', 'gateways', 'faults', 'completed', 'slowest 503', 'after 1 s', 'clients saw', 'wrong'];
  return [table(head, rows), ...wrong].join('\n');
}

/** Each fault alone, and the time until 503. */
export async function benchSingleFaults(): Promise<string> {
  const rows = [
    ...(await observeAll('memory', 1)),
    ...(await observeAll('redis', 2)),
    ...(await observeAll('upstash', 1)),
    ...(await observeAll('upstash', 1, 'a Worker')),
  ];
  return table(['one fault alone', 'store', 'gateways', 'asked meanwhile', '503', 'p50', 'slowest', '401'], rows);
}

async function observeAll(store: StoreKind, gateways: number, by?: 'a Worker'): Promise<string[][]> {
  const faults = SINGLE_FAULTS.filter(({ stores }) => stores.includes(store));
  const limit = 10n ** 15n;
  const made = await startHarness(gateways, [limit, ...faults.map(() => limit)], { store });
  const worker = by === undefined ? undefined : await startWorker(made);
  const harness = worker === undefined ? made : { ...made, gateways: [asGateway(worker)] };
  try {
    const rows: string[][] = [];
    const all: ClientReply[] = [];
    for (const [at, fault] of faults.entries()) {
      const fresh = harness.keys[at + 1];
      if (fresh === undefined) throw new Error('there is no key for it');
      const { seen, meanwhile } = await observeFault(harness, fault, fresh);
      all.push(...seen);
      const refused = meanwhile.filter(({ status }) => status === 503).map(({ took }) => took);
      refused.sort((one, other) => one - other);
      const millis = (took = 0): string => (refused.length === 0 ? '' : `${Math.round(took)} ms`);
      const unknown = meanwhile.filter(({ status }) => status === 401).length;
      const times = [millis(refused[refused.length >> 1]), millis(refused.at(-1))];
      rows.push([
        fault.name,
        store,
        by ?? `${gateways}`,
        `${meanwhile.length}`,
        `${refused.length}`,
        ...times,
        `${unknown}`,
      ]);
    }
    all.push(...(await recovered(harness, harness.keys)));
    const { wrong } = await verify(harness, all, by === undefined ? 'process' : 'Worker');
    if (wrong.length > 0) throw new Error(`${by ?? 'processes'} with the store in ${store}: ${wrong.join('\n')}`);
    return rows;
  } finally {
    await worker?.stop();
    await made.stop();
  }
}

const asGateway = ({ url, stop }: Awaited<ReturnType<typeof startWorker>>): Gateway => ({
  url,
  kill: stop,
  isUp: () => true,
  start: async () => undefined,
});

/**
 * The time from a reply's last byte until the store has its settlement or release, alone and beside twelve other
 * clients.
 */
export async function benchSettlementDelays(): Promise<string> {
  const limit = 10n ** 15n;
  const harness = await startHarness(2, [limit, limit, limit]);
  try {
    const measured = harness.keys[1];
    if (measured === undefined) throw new Error('there is no key');
    const alone = await measureSettlementDelays(harness, measured, 100);
    const load = startLoad(harness, 12);
    const beside = await measureSettlementDelays(harness, measured, 100);
    await load.end();
    const rowsOf = (name: string, { settled, released }: SettlementDelays): string[][] => [
      [name, 'settled', ...timesOf(settled)],
      [name, 'released', ...timesOf(released)],
    ];
    const rows = [...rowsOf('alone', alone), ...rowsOf('beside 12 clients', beside)];
    return table(['two gateways, Redis', 'ending', 'count', 'p50, ms', 'p99, ms', 'slowest, ms'], rows);
  } finally {
    await harness.stop();
  }
}

function timesOf(times: ReadonlyArray<number>): string[] {
  const sorted = [...times].sort((one, other) => one - other);
  const at = (share: number): string => (sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(1);
  return [`${sorted.length}`, at(0.5), at(0.99), at(1)];
}
