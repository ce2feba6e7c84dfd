// Blocks and milliseconds of each statement at ten million ledger rows, beside ten thousand and a million.
import { fillWith } from '../ledger/many-ledger-rows.ts';
import { type BlockCount, hotStatements, touchedBy } from '../ledger/touched-blocks.ts';
import { startPostgres } from '../support/postgres.ts';
import { table } from './table.ts';

const SIZES = (process.env.BENCH_ENTRIES ?? '10000,1000000,10000000').split(',').map(Number);
/** Both tables are partitioned. A ledger row has 1.5 scopes on average; five rows of a day share a set. */
const SIZE = `select round(sum(pg_total_relation_size(inhrelid)) / 1e6) as mb from pg_inherits
  where inhparent in ('gateway_operator.ledger_row'::regclass, 'gateway_operator.ledger_set'::regclass)`;

export async function benchTenMillion(): Promise<string> {
  const postgres = await startPostgres();
  try {
    const measured: ReadonlyMap<string, BlockCount>[] = [];
    const sizes: string[] = [];
    for (const [place, entries] of SIZES.entries()) {
      const connection = await postgres.createDatabase();
      await fillWith(entries, connection);
      const [size] = await postgres.query<{ mb: string }>(connection, SIZE);
      sizes.push(`${size?.mb} MB`);
      measured.push(await touchedBy(hotStatements(entries), connection, place === 0));
    }
    const names = hotStatements(SIZES[0] ?? 0).map(({ name }) => name);
    const cell = (touched: BlockCount | undefined) => `${touched?.blocks} · ${touched?.millis.toFixed(1)}`;
    const rows = names.map((name) => [name, ...measured.map((each) => cell(each.get(name)))]);
    rows.push(['size of ledger rows and their sets, with indexes', ...sizes]);
    const head = ['blocks · ms', ...SIZES.map((entries) => `${entries.toLocaleString('en')} entries`)];
    return `Statements by the number of entries; a tenth as many keys.\n\n${table(head, rows)}`;
  } finally {
    await postgres.stop();
  }
}
