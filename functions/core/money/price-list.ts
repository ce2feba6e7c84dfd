// The price of a model entry: from its manifest, else from the price list of its provider.
import { modelOf, namesPrice, type PricedParams } from '../models/entry-model.ts';
import { providerOf } from '../models/providers.ts';
import type { SnapshotEntry } from '../models/snapshot.ts';
import table from './price-table.json' with { type: 'json' };

export interface PriceRow {
  /** The pattern of model names; see `toTest`. */
  readonly match: string;
  /** Tokens of prompt and answer together; absent: unknown. */
  readonly window?: number;
  /** Absent: the model cannot be metered. */
  readonly price?: SnapshotEntry['price'];
}

/** Price lists by name. `also`: other lists that may have the model. */
type Lists = Readonly<Record<string, { readonly also: ReadonlyArray<string>; readonly rows: ReadonlyArray<PriceRow> }>>;

const LISTS: Lists = table.lists;

/**
 * The price and the context window of a model entry. If its manifest names any price, the listed price is not used. A
 * price without an output price is for embeddings only.
 */
export function modelEntryPrice(params: PricedParams): Pick<SnapshotEntry, 'price' | 'maxInputTokens'> {
  const isNamed = namesPrice(params);
  const { provider, model } = modelOf(params);
  const { prices } = providerOf(provider);
  const isListed = prices !== undefined && !(isNamed && params.maxInputTokens !== undefined);
  const listed = isListed ? rowOf(prices, model) : undefined;
  return {
    price: isNamed ? manifestPrice(params) : listed?.price,
    maxInputTokens: params.maxInputTokens ?? listed?.window,
  };
}

function manifestPrice(params: PricedParams): SnapshotEntry['price'] {
  const { inputCostPerMillionTokens: input, outputCostPerMillionTokens: output } = params;
  const { cachedInputCostPerMillionTokens: cachedInput, cacheWriteCostPerMillionTokens: cacheWrite } = params;
  const { cacheWriteLongCostPerMillionTokens: cacheWriteLong } = params;
  return input === undefined ? undefined : { input, output, cachedInput, cacheWrite, cacheWriteLong };
}

/** The row of a model in a provider's list; undefined: there is none, or the model cannot be metered. */
export function listingOf(list: string, model: string): PriceRow | undefined {
  const row = rowOf(list, model);
  return row?.price === undefined ? undefined : row;
}

function rowOf(list: string, model: string): PriceRow | undefined {
  const name = model.trim().toLowerCase();
  const lists = [list, ...(LISTS[list]?.also ?? [])].values();
  return lists.map((id) => findIn(indexOf(id), name)).find((row) => row !== undefined);
}

interface Matcher {
  matches(name: string): boolean;
}

/** A list whose rows have places; the first row that matches counts. */
interface ListIndex {
  readonly rows: ReadonlyArray<PriceRow>;
  /** The place of the first row with this name: an instance may have 512 model entries, and most rows are names. */
  readonly named: ReadonlyMap<string, number>;
  /** The rows that have other parts than names. */
  readonly patterns: ReadonlyArray<Matcher & { readonly place: number }>;
}

function findIn({ rows, named, patterns }: ListIndex, name: string): PriceRow | undefined {
  const place = named.get(name) ?? rows.length;
  const earlier = patterns.find((pattern) => pattern.place >= place || pattern.matches(name));
  return rows[Math.min(place, earlier?.place ?? place)];
}

/** Lists by name. The table is a constant, so each list is compiled once. */
const indexes = new Map<string, ListIndex>();

function indexOf(list: string): ListIndex {
  const known = indexes.get(list) ?? toIndex(LISTS[list]?.rows ?? []);
  indexes.set(list, known);
  return known;
}

function toIndex(rows: ReadonlyArray<PriceRow>): ListIndex {
  const named = new Map<string, number>();
  const patterns = rows.flatMap(({ match }, place) => {
    const alternatives = match.split(' ');
    const names = alternatives.filter(isName).map((name) => name.slice(1));
    for (const name of names) named.set(name, named.get(name) ?? place);
    const others = alternatives.filter((alternative) => !isName(alternative));
    return others.length === 0 ? [] : [{ place, matches: toTest(others) }];
  });
  return { rows, named, patterns };
}

const isName = (alternative: string): boolean => alternative.startsWith('=') && !alternative.includes('&');

/** `=gpt-4o ^gpt-4o-2024&*mini`: alternatives, each of parts that must all match. */
function toTest(match: ReadonlyArray<string>): Matcher['matches'] {
  const alternatives = match.map((alternative) => alternative.split('&').map(toPart));
  return (name) => alternatives.some((parts) => parts.every((matches) => matches(name)));
}

function toPart(part: string): Matcher['matches'] {
  const toMatch = PARTS.get(part.charAt(0));
  return toMatch === undefined ? () => false : toMatch(part.slice(1));
}

/** Tests of a part's text, by the part's first letter. */
const PARTS = new Map<string, (text: string) => Matcher['matches']>([
  ['=', (text) => (name) => name === text],
  ['^', (text) => (name) => name.startsWith(text)],
  ['$', (text) => (name) => name.endsWith(text)],
  ['*', (text) => (name) => name.includes(text)],
  ['/', (text) => RegExp.prototype.test.bind(new RegExp(text))],
]);
