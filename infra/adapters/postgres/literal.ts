// Array texts of PostgreSQL, for the columns of very many rows.

/**
 * PostgreSQL's array text: exact for numbers of any size, and made in a third of the client library's time. Not for
 * free text: a comma would add an element, and PostgreSQL refuses the statement, because the other columns get nulls.
 */
export function literal<T>(rows: ReadonlyArray<T>, column: (row: T) => string | number | bigint | boolean): string {
  return `{${rows.map(column).join(',')}}`;
}
