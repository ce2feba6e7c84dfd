// The price of a model entry: what its manifest says, and only where that says nothing, what its provider lists.
import { modelOf, namesPrice, type PricedParams } from './entry-model.ts';
import table from './price-table.json' with { type: 'json' };
import { providerOf } from './providers.ts';
import { type SnapshotEntry, WrittenRates, type WrittenTier } from './snapshot.ts';

export interface PriceRow {
  /** The names that it means; see `toMatcher`. */
  readonly match: string;
  /** Tokens of prompt and answer together; 0: unknown. */
  readonly window: number;
  /** Dollars per million tokens; empty where the model cannot be metered. */
  readonly rates: string;
}

/** By provider; `also`: where else a model may be found. */
type Lists = Readonly<Record<string, { readonly also: ReadonlyArray<string>; readonly rows: ReadonlyArray<PriceRow> }>>;

const LISTS: Lists = table.lists;

/** A manifest that names any price is taken at its word: nothing is filled in from elsewhere, and half a price is none. */
export function entryPrice(params: PricedParams): Pick<SnapshotEntry, 'price' | 'maxInputTokens'> {
  const listed = namesPrice(params) && params.maxInputTokens !== undefined ? undefined : listing(params);
  const maxInputTokens = params.maxInputTokens ?? listed?.window;
  const price = namesPrice(params) ? manifestPrice(params) : listed?.price;
  return {
    ...(price === undefined ? {} : { price }),
    ...(maxInputTokens === undefined ? {} : { maxInputTokens }),
  };
}

function manifestPrice(params: PricedParams): SnapshotEntry['price'] {
  const { inputCostPerMillionTokens: input, outputCostPerMillionTokens: output } = params;
  const { cachedInputCostPerMillionTokens: cachedInput, cacheWriteCostPerMillionTokens: cacheWrite } = params;
  if (input === undefined || output === undefined) return undefined;
  return {
    input,
    output,
    ...(cachedInput === undefined ? {} : { cachedInput }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
  };
}

function listing(params: PricedParams): Listing | undefined {
  const { provider, model } = modelOf(params);
  const { prices } = providerOf(provider);
  return prices === undefined ? undefined : listingOf(prices, model);
}

export interface Listing {
  readonly price: WrittenRates & { readonly tiers?: WrittenTier[] };
  /** Tokens of prompt and answer together. */
  readonly window: number | undefined;
}

/** What the list of a provider says of a model; undefined when it says nothing, or nothing that can be metered. */
export function listingOf(list: string, model: string): Listing | undefined {
  const name = model.trim().toLowerCase();
  const own = LISTS[list];
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
const matchers = new Map<string, ReadonlyArray<Matcher>>();

function rowsOf(list: string): ReadonlyArray<Matcher> {
  const rows = matchers.get(list) ?? (LISTS[list]?.rows ?? []).map((row) => ({ row, means: toMatcher(row.match) }));
  matchers.set(list, rows);
  return rows;
}

function toListing({ window, rates: text }: PriceRow): Listing | undefined {
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
