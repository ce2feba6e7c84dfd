// The models that a key may use, in OpenAI's format or Anthropic's, with the known context window, limit and prices.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import type { SnapshotEntry } from '#core/models/snapshot.ts';
import { toPrice } from '#core/money/price.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { GatewayDependencies } from '../deps.ts';
import { modelsOf } from './access.ts';
import type { Caller } from './authenticate.ts';

type Entries = ReadonlyArray<SnapshotEntry>;

const NO_MODELS: ReadonlyMap<string, Entries> = new Map();

/** The forms of a model and of a list of models in one API. */
interface ModelFormat {
  toModel(id: string, entries: Entries): object;
  toList(models: ReadonlyArray<object>, ids: ReadonlyArray<string>): object;
}

/** `id`: one model; absent: all of them. */
export function createModels({ snapshots }: Pick<GatewayDependencies, 'snapshots'>) {
  return async function models(
    caller: Caller,
    client: Pick<HttpExchange, 'header'>,
    id?: string,
  ): Promise<Result<object, Failure>> {
    const snapshot = snapshots.current();
    const models = snapshot === undefined ? NO_MODELS : modelsOf(caller, snapshot);
    const { toModel, toList } = client.header('anthropic-version') === undefined ? openai : anthropic;
    if (id === undefined)
      return ok(
        toList(
          [...models].map((model) => toModel(...model)),
          [...models.keys()],
        ),
      );
    const entries = models.get(id);
    return entries === undefined ? err({ code: 'model_not_found', model: id }) : ok(toModel(id, entries));
  };
}

const openai: ModelFormat = {
  // Clients require a date; the instance has none for a model.
  toModel: (id, entries) => {
    const { maxInputTokens: context_window, maxOutputTokens: max_output_tokens } = limitsOf(entries);
    const known = { context_window, max_output_tokens, pricing: pricingOf(entries) };
    return { id, object: 'model', created: 0, owned_by: 'gateway-operator', ...known };
  },
  toList: (data) => ({ object: 'list', data }),
};

const anthropic: ModelFormat = {
  toModel: (id, entries) => {
    const { maxInputTokens: max_input_tokens, maxOutputTokens: max_tokens } = limitsOf(entries);
    const known = { max_input_tokens, max_tokens, pricing: pricingOf(entries) };
    return { type: 'model', id, display_name: id, created_at: '1970-01-01T00:00:00Z', ...known };
  },
  toList: (data, ids) => ({ data, has_more: false, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null }),
};

/**
 * The limits of a model: the smallest of its model entries, because any of them may answer. Unknown limits are absent
 * in the reply.
 */
function limitsOf(entries: Entries) {
  return { maxInputTokens: minOf(entries, 'maxInputTokens'), maxOutputTokens: minOf(entries, 'maxOutputTokens') };
}

function minOf(entries: Entries, name: 'maxInputTokens' | 'maxOutputTokens'): number | undefined {
  const known = entries.flatMap((entry) => entry[name] ?? []);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Prices of the most expensive model entry, in dollars per million tokens: reservations use these. */
function pricingOf(entries: Entries): object | undefined {
  const priced = entries.flatMap(({ price }) => (price === undefined ? [] : [{ price, height: heightOf(price) }]));
  const [first, ...others] = priced;
  if (first === undefined) return undefined;
  const { price } = others.reduce((max, next) => (next.height > max.height ? next : max), first);
  const { input, output, cachedInput: cached_input, cacheWrite: cache_write } = price;
  return { unit: 'dollars per million tokens', input, output, cached_input, cache_write };
}

function heightOf(price: NonNullable<SnapshotEntry['price']>): bigint {
  const [tier] = toPrice(price)?.tiers ?? [];
  return tier === undefined ? 0n : tier.rates.input + tier.rates.output;
}
