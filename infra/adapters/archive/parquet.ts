// Ledger rows as Apache Parquet: one file, with a row group for each call.
import { type FileMetaData, parquetMetadataAsync, parquetRead } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { ArchivedRow, ArchivedScope, RowFigures, RowFormat } from '#core/ports/archive.ts';

/** The writer has its own version of the reader's types. */
type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];
type Column = Pick<SchemaElement, 'type' | 'type_length' | 'converted_type' | 'logical_type' | 'scale' | 'precision'>;

const TEXT: Column = { type: 'BYTE_ARRAY', converted_type: 'UTF8' };
const UUID: Column = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } };
const COUNT: Column = { type: 'INT64' };
const TIME: Column = {
  type: 'INT64',
  converted_type: 'TIMESTAMP_MILLIS',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
};
/** Nano-dollars are dollars with nine decimals. */
const DOLLARS: Column = { type: 'INT64', converted_type: 'DECIMAL', precision: 18, scale: 9 };
const MAX_DOLLARS = 10n ** 18n;

const required = (name: string, column: Column): SchemaElement => ({ name, repetition_type: 'REQUIRED', ...column });
const optional = (name: string, column: Column): SchemaElement => ({ name, repetition_type: 'OPTIONAL', ...column });

/** The columns with one value per row, in order. */
const COLUMNS: ReadonlyArray<readonly [name: string, column: Column, read: (row: ArchivedRow) => unknown]> = [
  ['id', UUID, ({ id }) => toBytes(id)],
  ['kind', TEXT, ({ kind }) => kind],
  ['instance_uid', TEXT, ({ instanceUid }) => instanceUid],
  ['instance', TEXT, ({ instance }) => instance],
  // The time in the id, when the request was reserved: the first 48 bits.
  ['time', TIME, ({ id }) => BigInt(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))],
  ['settled_at', TIME, ({ settledAt }) => BigInt(settledAt)],
  ['model', TEXT, ({ model }) => model],
  ['identifier', TEXT, ({ identifier }) => identifier],
  ['input_tokens', COUNT, ({ tokens }) => BigInt(tokens.input)],
  ['output_tokens', COUNT, ({ tokens }) => BigInt(tokens.output)],
  ['cached_input_tokens', COUNT, ({ tokens }) => BigInt(tokens.cachedInput)],
  ['cache_write_tokens', COUNT, ({ tokens }) => BigInt(tokens.cacheWrite)],
  ['cost', DOLLARS, ({ cost, id }) => toDollars(cost, id)],
  ['estimated', { type: 'BOOLEAN' }, ({ estimated }) => estimated],
];

const SCHEMA: SchemaElement[] = [
  { name: 'ledger_row', num_children: COLUMNS.length + 1 },
  ...COLUMNS.map(([name, column]) => required(name, column)),
  { name: 'scopes', repetition_type: 'REQUIRED', converted_type: 'LIST', num_children: 1 },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', repetition_type: 'REQUIRED', num_children: 5 },
  required('id', UUID),
  optional('kind', TEXT),
  optional('alias', TEXT),
  optional('namespace', TEXT),
  optional('name', TEXT),
];

export const parquet: RowFormat = {
  create: () => {
    const writer = new ByteWriter(1024 * 1024);
    const file = new ParquetWriter({ writer, schema: SCHEMA, createdBy: 'gateway-operator' });
    return {
      add: (rows) => {
        const values = COLUMNS.map(([name, , read]) => ({ name, data: rows.map(read), ...encodingOf(name) }));
        const scopes = { name: 'scopes', data: rows.map(toScopes()), statistics: false };
        file.write({ columnData: [...values, scopes], rowGroupSize: rows.length });
      },
      size: () => writer.offset,
      finish: () => {
        file.finish();
        return writer.getBytes();
      },
    };
  },
  figuresOf: async (bytes) => {
    // The buffer may have more than these bytes.
    const slice = (from: number, to?: number) => Uint8Array.prototype.slice.call(bytes, from, to).buffer;
    const file = { byteLength: bytes.byteLength, slice };
    const metadata = withoutLogicalTypes(await parquetMetadataAsync(file));
    const figures = { rows: 0, cost: 0n, ids: 0n };
    for (const { num_rows } of metadata.row_groups) {
      const rowStart = figures.rows;
      figures.rows += Number(num_rows);
      const columns = ['id', 'cost'];
      await parquetRead({
        file,
        metadata,
        columns,
        rowStart,
        rowEnd: figures.rows,
        onChunk: ({ columnName, columnData }) => {
          for (const value of columnData)
            if (columnName === 'id') figures.ids += lastBitsOf(value);
            else figures.cost += BigInt(value);
        },
      });
    }
    return figures satisfies RowFigures;
  },
};

/**
 * Ids are unique, so a dictionary of them would only take space. Readers skip row groups by the bounds of ids and
 * times; bounds of other columns are not worth their time.
 */
const encodingOf = (name: string) => ({
  statistics: name === 'id' || name === 'time',
  ...(name === 'id' && { encoding: 'PLAIN' as const }),
});

/** The library would read DECIMAL as a float, and ids as text: as stored, both are exact and cheap. */
function withoutLogicalTypes(metadata: FileMetaData): FileMetaData {
  const schema = metadata.schema.map(({ converted_type: _, logical_type: __, ...element }) => element);
  return { ...metadata, schema };
}

const lastBitsOf = (id: Uint8Array): bigint => BigInt(new DataView(id.buffer, id.byteOffset, 16).getUint32(12));

const toBytes = (id: string): Uint8Array => Buffer.from(id.replaceAll('-', ''), 'hex');

function toDollars(cost: bigint, id: string): bigint {
  if (cost < MAX_DOLLARS && cost > -MAX_DOLLARS) return cost;
  throw new Error(
    `the ledger row ${id} costs 1,000,000,000 dollars or more: correct it in gateway_operator.ledger_row`,
  );
}

/** Rows share their lists of scopes, and lists their scopes: each is converted once. */
function toScopes() {
  const lists = new Map<ArchivedRow['scopes'], ReadonlyArray<object>>();
  const scopes = new Map<ArchivedScope, object>();
  const converted = (scope: ArchivedScope): object => {
    const known = scopes.get(scope) ?? { ...scope, id: toBytes(scope.id) };
    scopes.set(scope, known);
    return known;
  };
  return ({ scopes: list }: ArchivedRow): ReadonlyArray<object> => {
    const known = lists.get(list) ?? list.map(converted);
    lists.set(list, known);
    return known;
  };
}
