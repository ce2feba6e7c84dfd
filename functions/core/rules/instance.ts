// Rules about instances: the instance that an object names exists and allows its namespace; an instance has model
// entries, each with its own Secret.
import { SHARED_CREDENTIALS_ALLOWED, SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import { modelOf, namesPrice, type PricedParams } from '../models/entry-model.ts';
import { isKnownProvider, PROVIDER_NAMES, partsOf, providerOf } from '../models/providers.ts';
import type { Finding } from './finding.ts';
import type { DidYouMean } from './nearest-name.ts';

/** The value of `spec.connectionRef.instanceRef`. */
export interface InstanceName {
  readonly namespace: string;
  readonly name: string;
}

export const toPath = ({ namespace, name }: InstanceName): string => `${namespace}/${name}`;

export const isSameInstance = (one: InstanceName, other: InstanceName): boolean =>
  one.name === other.name && one.namespace === other.namespace;

const reference = (instance: InstanceName) =>
  ({ rule: 'InstanceNotFound', path: 'spec.connectionRef.instanceRef', value: toPath(instance) }) as const;

/** The instance does not exist, or does not allow the namespace: the finding does not show which. */
export const instanceNotFound = (instance: InstanceName, from: string): Finding<'InstanceNotFound'> => ({
  ...reference(instance),
  type: 'Not found',
  message:
    `no GatewayInstance of this name allows namespace ${JSON.stringify(from)}; ` +
    'check name and namespace, create it first (earlier in the same file), or ask its owner to allow this namespace',
  effect: 'refuse-unless-dry-run',
});

/** The instance no longer allows a namespace. The namespace was allowed before, so it may know of the instance. */
export const namespaceNotAllowed = (instance: InstanceName, from: string): Finding<'NamespaceNotAllowed'> => ({
  ...reference(instance),
  type: 'Invalid value',
  rule: 'NamespaceNotAllowed',
  message: `no longer allows namespace ${JSON.stringify(from)}; ask its owner to add it to spec.allowedNamespaces`,
  effect: 'refuse',
});

/** The instance is being deleted. The namespace is allowed, so it may know of the instance. */
export const instanceIsDeleted = (instance: InstanceName): Finding<'InstanceNotFound'> => ({
  ...reference(instance),
  type: 'Invalid value',
  message: 'this GatewayInstance is being deleted; choose another one, or wait until it is gone and create it again',
  effect: 'refuse',
});

/** An instance without model entries is legal: keys may be created before there are models. */
export function noModels(models: ReadonlyArray<unknown>): Finding<'NoModels'>[] {
  if (models.length > 0) return [];
  const message = 'the instance has no model entries, so it serves no model; add a model entry for each model';
  return [{ rule: 'NoModels', path: 'spec.models', value: undefined, message, effect: 'warn' }];
}

interface AddressParams {
  readonly modelCredentials?: { readonly keys: Readonly<Record<string, string>> } | undefined;
  readonly gatewayParams: PricedParams & { readonly apiBase?: string | undefined };
}

/** Every key has a budget, so no key can use a model without a price. An input price alone is for embeddings. */
export function notPriced(
  { modelName, gatewayParams: params }: PricedEntry,
  index: number,
): Finding<'ModelNotPriced'>[] {
  const path = `spec.models[${index}].gatewayParams`;
  return [{ rule: 'ModelNotPriced', path, value: undefined, message: priceAdvice(modelName, params), effect: 'warn' }];
}

interface PricedEntry {
  readonly modelName: string;
  readonly gatewayParams: PricedParams;
}

function priceAdvice(modelName: string, params: PricedParams): string {
  const absent = (['inputCostPerMillionTokens', 'outputCostPerMillionTokens'] as const).filter(
    (name) => params[name] === undefined,
  );
  const named = JSON.stringify(modelName);
  if (params.inputCostPerMillionTokens !== undefined)
    return `without outputCostPerMillionTokens, keys can use ${named} for embeddings only; set it for anything else ("0" is free)`;
  const why = namesPrice(params) ? 'its input has none' : `no price is listed for ${JSON.stringify(params.model)}`;
  return `no key can use ${named} without a price, and ${why}; set ${absent.join(' and ')} ("0" is free)`;
}

/**
 * A model entry without an `apiBase` cannot be called if its provider has no address of its own. Usually the provider
 * is misspelt.
 */
export function noAddress(
  { modelCredentials, gatewayParams }: AddressParams,
  index: number,
  didYouMean: DidYouMean,
): Finding<'ProviderUnknown' | 'AddressMissing'>[] {
  const given = modelCredentials?.keys ?? {};
  if (gatewayParams.apiBase !== undefined || given.apiBase !== undefined) return [];
  const { provider: name, model } = modelOf(gatewayParams);
  const provider = providerOf(name, model);
  const absent = partsOf(provider).filter((part) => given[part] === undefined);
  if (provider.base !== undefined && absent.length === 0) return [];
  const field = gatewayParams.customLLMProvider === undefined ? 'model' : 'customLLMProvider';
  const named = { path: `spec.models[${index}].gatewayParams.${field}`, value: gatewayParams[field] };
  if (!isKnownProvider(name)) {
    const meant = didYouMean(name, PROVIDER_NAMES);
    const advice = meant === '' ? '; correct the provider, or' : `${meant} If it is your own server,`;
    const message = `provider ${JSON.stringify(name)} is unknown, and the model entry has no apiBase${advice} set apiBase`;
    return [{ rule: 'ProviderUnknown', ...named, message, effect: 'warn' }];
  }
  const parts = absent.length === 0 ? '' : `, or map ${absent.join(' and ')} in modelCredentials`;
  const message = `${name} has no address of its own, so the model entry serves nothing; set apiBase${parts}`;
  return [{ rule: 'AddressMissing', ...named, message, effect: 'warn' }];
}

interface Entry {
  readonly identifier: string;
  readonly modelCredentials?: { readonly nameRef: string } | undefined;
}

/**
 * No two model entries share a credential Secret. `allowed` is the value of the annotation that permits it. Of those
 * that share, all but the first are named; the first is the model entry that had the Secret `before`, else the first in
 * the list. So the finding names the model entry that an edit changed, and an old violation stays the same when the
 * list is reordered.
 */
export function sharedCredentials(
  models: ReadonlyArray<Entry>,
  allowed: string | undefined,
  before: ReadonlyArray<Entry> = [],
): Finding<'SharedCredentials'>[] {
  if (allowed === SHARED_CREDENTIALS_ALLOWED) return [];
  const uses = usesOf(models);
  if (new Set(uses.map(({ secret }) => secret)).size === uses.length) return [];
  const indexes = new Map(usesOf(before).map((use) => [nameOf(use), use.index]));
  const indexOf = (use: Use) => indexes.get(nameOf(use)) ?? before.length + use.index;
  const owners = new Map<string, string>();
  for (const use of uses.toSorted((left, right) => indexOf(right) - indexOf(left)))
    owners.set(use.secret, use.identifier);
  return uses.flatMap(({ identifier, index, secret }): Finding<'SharedCredentials'>[] => {
    const owner = owners.get(secret);
    if (owner === identifier) return [];
    const message =
      `model entry ${JSON.stringify(owner)} already uses this Secret; give each its own Secret, or allow sharing ` +
      `with the annotation ${SHARED_CREDENTIALS_ANNOTATION}: "${SHARED_CREDENTIALS_ALLOWED}"`;
    const path = `spec.models[${index}].modelCredentials.nameRef`;
    return [{ rule: 'SharedCredentials', type: 'Duplicate value', path, value: secret, message, effect: 'refuse' }];
  });
}

interface Use {
  readonly identifier: string;
  readonly index: number;
  readonly secret: string;
}

const usesOf = (models: ReadonlyArray<Entry>): Use[] =>
  models.flatMap(({ identifier, modelCredentials }, index) =>
    modelCredentials === undefined ? [] : [{ identifier, index, secret: modelCredentials.nameRef }],
  );

const nameOf = ({ identifier, secret }: Use): string => JSON.stringify([identifier, secret]);
