// What does a provider list for a model? Looked up in a table that is generated from a package of price data.
import { PRICE_TABLE, type PriceRow } from './price-table.ts';
import { WrittenRates, type WrittenTier } from './snapshot.ts';

export interface Listing {
  readonly price: WrittenRates & { readonly tiers?: WrittenTier[] };
  /** Tokens of prompt and answer together. */
  readonly window: number | undefined;
}

/** What the list of a provider says of a model; undefined when it says nothing, or nothing that can be metered. */
export function listingOf(list: string, model: string): Listing | undefined {
  const name = model.trim().toLowerCase();
  const own = PRICE_TABLE.lists[list];
  if (own === undefined) return undefined;
  for (const id of [list, ...own.also]) {
    const row = rowsOf(id).find(({ means }) => means(name))?.row;
    if (row !== undefined) return toListing(row);
  }
  return undefined;
}

interface Matcher {
  readonly row: PriceRow;
  means(name: string): boolean;
}

/** The table is a constant: each of its lists is taken apart once. */
const known = new Map<string, ReadonlyArray<Matcher>>();

function rowsOf(list: string): ReadonlyArray<Matcher> {
  const rows =
    known.get(list) ?? (PRICE_TABLE.lists[list]?.rows ?? []).map((row) => ({ row, means: toMatcher(row[0]) }));
  known.set(list, rows);
  return rows;
}

function toListing([, window, text]: PriceRow): Listing | undefined {
  const [base, ...tiers] = text.split(' above=');
  const rates = toRates(base ?? '');
  if (rates === undefined) return undefined;
  const written = tiers.flatMap((tier) => {
    const [above = '', ...words] = tier.split(' ');
    const more = toRates(words.join(' '));
    return more === undefined ? [] : [{ above: Number(above), ...more }];
  });
  const price = written.length === 0 ? rates : { ...rates, tiers: written };
  return { price, window: window === 0 ? undefined : window };
}

/** `input=2.5 output=10`. */
function toRates(text: string): WrittenRates | undefined {
  const read = WrittenRates.safeParse(Object.fromEntries(text.split(' ').map((word) => word.split('='))));
  return read.success ? read.data : undefined;
}

/** `=gpt-4o ^gpt-4o-2024&*mini`: alternatives, each of parts that must all hold. */
function toMatcher(match: string): Matcher['means'] {
  const alternatives = match.split(' ').map((alternative) => alternative.split('&').map(toPart));
  return (name) => alternatives.some((parts) => parts.every((holds) => holds(name)));
}

function toPart(part: string): Matcher['means'] {
  const text = part.slice(1);
  switch (part[0]) {
    case '^':
      return (name) => name.startsWith(text);
    case '$':
      return (name) => name.endsWith(text);
    case '*':
      return (name) => name.includes(text);
    case '/': {
      const pattern = new RegExp(text);
      return (name) => pattern.test(name);
    }
    default:
      return (name) => part === `=${name}`;
  }
}
