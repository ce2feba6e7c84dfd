// `npm run bench -- faults`: many seeds of what test/ledger/faults.world.test.ts does with three, for longer.
import { type Storm, weather } from '../ledger/faults/storm.ts';
import { table } from './table.ts';

/** FAULT_SEEDS=1-20 (default 1-6), FAULT_SECONDS=60 (default 60) of faults each; odd seeds with one gateway, even ones with two. */
export async function benchFaults(): Promise<string> {
  const [first = 1, last = first] = (process.env.FAULT_SEEDS ?? '1-6').split('-').map(Number);
  const millis = Number(process.env.FAULT_SECONDS ?? 60) * 1000;
  const rows: string[][] = [];
  const wrong: string[] = [];
  for (let seed = first; seed <= last; seed += 1) {
    const storm: Storm = { seed, millis, gateways: 2 - (seed % 2) };
    const { faults, statuses, completed, slowest, wrong: told } = await weather(storm);
    const answers = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`);
    rows.push([
      `${seed}`,
      `${storm.gateways}`,
      `${faults.length}`,
      `${completed}`,
      `${slowest} ms`,
      answers.join(', '),
      `${told.length}`,
    ]);
    wrong.push(...told.map((each) => `seed ${seed}: ${each} (${faults.join(', ')})`));
  }
  if (wrong.length > 0) process.exitCode = 1;
  const head = ['seed', 'gateways', 'faults', 'completed', 'slowest 503', 'clients saw', 'wrong'];
  return [table(head, rows), ...wrong].join('\n');
}
