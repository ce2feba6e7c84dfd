// APIs of the gateway, each with a provider of each dialect and each cloud that serves it.
import { PROVIDER_NAMES, type Provider, providerOf } from '#core/models/providers.ts';
import { type Api, codecOf } from '../../functions/gateway/wire/api.ts';
import { APIS } from '../../functions/gateway/wire/apis.ts';

/** An API, and a provider that serves it: one of each dialect and each cloud. */
export interface Pair {
  readonly api: Api;
  readonly name: string;
  readonly model: string;
  readonly provider: Provider;
  readonly label: string;
}

function pairsOf(api: Api): ReadonlyArray<Pair> {
  const rows = PROVIDER_NAMES.flatMap((name) => ['gpt-x', 'claude-x'].map((model) => ({ name, model })));
  const all = rows.map((row) => ({ ...row, provider: providerOf(row.name, row.model) }));
  const served = all.filter(({ provider }) => codecOf(api, provider) !== undefined);
  const labelled = served.map((one) => ({ ...one, api, label: labelOf(api, one.provider) }));
  return [...new Map(labelled.map((pair) => [pair.label, pair])).values()];
}

function labelOf({ name }: Api, { dialect, cloud }: Provider): string {
  return `${name} for ${dialect}${cloud === undefined ? '' : ` at ${cloud}`}`;
}

export const PAIRS = APIS.flatMap(pairsOf);
