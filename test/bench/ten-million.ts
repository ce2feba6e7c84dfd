// Blocks and milliseconds of each statement at ten million entries, beside ten thousand and a million.
import { fillWith } from '../ledger/many-entries.ts';
import { type BlockCount, hotStatements, touchedBy } from '../ledger/touched-blocks.ts';
import { startPostgres } from '../support/postgres.ts';
import { table } from './table.ts';

const SIZES = (process.env.BENCH_ENTRIES ?? '10000,1000000,10000000').split(',').map(Number);

export async function benchTenMillion(): Promise<string> {
  const postgres = await startPostgres();
  try {
    const measured: ReadonlyMap<string, BlockCount>[] = [];
    for (const [place, entries] of SIZES.entries()) {
      const connection = await postgres.createDatabase();
      await fillWith(entries, connection);
      measured.push(await touchedBy(hotStatements(entries), connection, place === 0));
    }
    const names = hotStatements(SIZES[0] ?? 0).map(({ name }) => name);
    const cell = (touched: BlockCount | undefined) => `${touched?.blocks} · ${touched?.millis.toFixed(1)}`;
    const rows = names.map((name) => [name, ...measured.map((each) => cell(each.get(name)))]);
    const head = ['blocks · ms', ...SIZES.map((entries) => `${entries.toLocaleString('en')} entries`)];
    return `Statements by the number of entries; a tenth as many keys.\n\n${table(head, rows)}`;
  } finally {
    await postgres.stop();
  }
}
