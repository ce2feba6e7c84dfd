// Ids: a new one for each request, account and ledger row.
/** UUIDv7 strings: their time decides the partition of a ledger row (LEDGER 2). */
export interface Ids {
  next(): string;
}
