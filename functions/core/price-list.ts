// The price of a model entry: what its manifest says, and only where that says nothing, what its provider lists.
import { modelOf, namesPrice, type PricedParams } from './entry-model.ts';
import table from './price-table.json' with { type: 'json' };
import { providerOf } from './providers.ts';
import { type SnapshotEntry, WrittenRates } from './snapshot.ts';

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
  const isNamed = namesPrice(params);
  const { provider, model } = modelOf(params);
  const { prices } = providerOf(provider);
  const isListed = prices !== undefined && !(isNamed && params.maxInputTokens !== undefined);
  const listed = isListed ? listingOf(prices, model) : undefined;
  return {
    price: isNamed ? manifestPrice(params) : listed?.price,
    maxInputTokens: params.maxInputTokens ?? listed?.window,
  };
}

function manifestPrice(params: PricedParams): SnapshotEntry['price'] {
  const { inputCostPerMillionTokens: input, outputCostPerMillionTokens: output } = params;
  const { cachedInputCostPerMillionTokens: cachedInput, cacheWriteCostPerMillionTokens: cacheWrite } = params;
  return input === undefined || output === undefined ? undefined : { input, output, cachedInput, cacheWrite };
}

interface Listing {
  readonly price: NonNullable<SnapshotEntry['price']>;
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
  const toHolds = PARTS.get(part.charAt(0));
  return toHolds === undefined ? () => false : toHolds(part.slice(1));
}

/** What the first letter of a part says of the rest. */
const PARTS: ReadonlyMap<string, (text: string) => Matcher['means']> = new Map([
  ['=', (text: string) => (name: string) => name === text],
  ['^', (text: string) => (name: string) => name.startsWith(text)],
  ['$', (text: string) => (name: string) => name.endsWith(text)],
  ['*', (text: string) => (name: string) => name.includes(text)],
  [
    '/',
    (text: string, pattern = new RegExp(text)) =>
      (name: string) =>
        pattern.test(name),
  ],
]);
