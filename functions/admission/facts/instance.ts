// Facts about an instance: its Secrets, the VirtualKeys that an update restricts, and model entries without a price.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { listOf } from '#core/json/json.ts';
import { namesPrice, type PricedParams } from '#core/models/entry-model.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { Reference, ReferenceFacts } from '#core/rules/references.ts';
import {
  createSecretCheck,
  newSecretUses,
  type SecretFinding,
  type SecretFindings,
  type SecretUse,
  toReadSecret,
} from '#core/rules/secrets.ts';
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { virtualKeys } from '#crds/names/resources.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import type { ComparedObject } from '../check.ts';
import type { Metadata } from '../subject.ts';
import {
  belongsTo,
  type FactContext,
  findReferred,
  findSecret,
  INSTANCE_FIELD,
  MAX_READS,
  servedModels,
  visitPage,
} from './context.ts';

/** VirtualKeys of the one page that is read of a list, however many there are. */
const MAX_KEYS = 500;

interface RestrictedKey {
  readonly path: string;
  /** The removed models that the VirtualKey names. */
  readonly models: ReadonlyArray<string>;
}

export interface InstanceFacts {
  /**
   * Findings in Secrets by their use, without those that the other version has too. A Secret that the user may not read
   * counts as missing.
   */
  readonly secrets: ReadonlyMap<SecretUse, ReadonlyArray<SecretFinding>>;
  /** Models that this update removes. */
  readonly removedModels: ReadonlySet<string>;
  /** VirtualKeys that are restricted to a removed model, among one page of the instance's VirtualKeys. */
  readonly restrictedKeys: ReadonlyArray<RestrictedKey>;
  /** Whether the instance has more VirtualKeys than that page. */
  readonly hasMoreKeys: boolean;
  /** Teams that policies name, in the order of the policies. */
  readonly policyTeams: ReadonlyArray<readonly [Reference, ReferenceFacts | undefined]>;
  /** Indexes of model entries without a price: neither their own (for input and output) nor a listed one. */
  readonly unpriced: ReadonlySet<number>;
}

export async function gatherInstanceFacts(
  object: ComparedObject<GatewayInstanceSpec>,
  context: FactContext,
): Promise<InstanceFacts> {
  const { metadata, spec } = object;
  const old = object.old();
  const removedModels = old === undefined ? new Set<string>() : servedModels(old).difference(servedModels(spec));
  const [secrets, keys, policyTeams, unpriced] = await Promise.all([
    findInSecrets(object, context),
    findRestricted(metadata, removedModels, context),
    findPolicyTeams(metadata, spec, context),
    findUnpriced(spec),
  ]);
  return { secrets, removedModels, ...keys, policyTeams, unpriced };
}

/** Each Team is read once, however many policies name it. */
async function findPolicyTeams(
  { namespace }: Metadata,
  { keyPolicies = [] }: GatewayInstanceSpec,
  context: FactContext,
): Promise<InstanceFacts['policyTeams']> {
  const references = keyPolicies.flatMap(({ teamRef }, index): Reference[] =>
    teamRef === undefined
      ? []
      : [{ kind: 'Team', path: `spec.keyPolicies[${index}].teamRef.name`, name: teamRef.name, namespace }],
  );
  const teamsByName = Map.groupBy(references, ({ name }) => name).values();
  const found = await mapConcurrent(
    [...teamsByName],
    async (sameTeam) => {
      const [first] = sameTeam;
      const facts = first && (await findReferred(first, context));
      return sameTeam.map((reference) => [reference, facts] as const);
    },
    MAX_READS,
  );
  return found.flat();
}

/**
 * Findings may name the keys of a Secret, because the user may read the Secret. Most users may read all Secrets of the
 * namespace, so that is asked first.
 */
async function findInSecrets(
  { spec, other, metadata: { namespace } }: ComparedObject<GatewayInstanceSpec>,
  context: FactContext,
): Promise<InstanceFacts['secrets']> {
  const { cluster, user } = context;
  const uses = newSecretUses(spec, other());
  const mayReadAll = uses.size > 1 && (await cluster.may(user, 'get', RESOURCES.secrets, namespace));
  const check = createSecretCheck(spec, namespace);
  const found = await mapConcurrent(
    uses,
    async ([name, own]) => {
      const reading = mayReadAll
        ? cluster.get(RESOURCES.secrets, namespace, name)
        : findSecret(namespace, name, context);
      const findings = check(name, toReadSecret(await reading, true));
      return own.map(({ use }) => [use, findingsOf(use, findings)] as const);
    },
    MAX_READS,
  );
  return new Map(found.flat());
}

const findingsOf = (use: SecretUse, { entries, ...findings }: SecretFindings): ReadonlyArray<SecretFinding> =>
  typeof use === 'number' ? (entries.get(use) ?? []) : findings[use];

async function findRestricted(
  { namespace, name }: Metadata,
  removed: ReadonlySet<string>,
  { cluster }: FactContext,
): Promise<Pick<InstanceFacts, 'restrictedKeys' | 'hasMoreKeys'>> {
  const restrictedKeys: RestrictedKey[] = [];
  if (name === undefined || removed.size === 0) return { restrictedKeys, hasMoreKeys: false };
  const keys = { resource: virtualKeys, fields: { [INSTANCE_FIELD]: name }, limit: MAX_KEYS };
  const hasMoreKeys = await visitPage(cluster, keys, (key) => {
    if (!belongsTo(key, { namespace, name })) return;
    const named = new Set(listOf(isMap(key.spec) ? key.spec.models : undefined));
    const models = [...removed].filter((model) => named.has(model));
    if (models.length > 0) restrictedKeys.push({ path: `${key.metadata.namespace}/${key.metadata.name}`, models });
  });
  return { restrictedKeys, hasMoreKeys };
}

/**
 * Indexes of model entries without a price. The price table is large, so it is loaded with the first model entry that
 * has no price of its own.
 */
async function findUnpriced({ models }: GatewayInstanceSpec): Promise<ReadonlySet<number>> {
  const withoutOwnPrice = models.flatMap(({ gatewayParams: { inputCostPerMillionTokens: input, ...params } }, index) =>
    input === undefined || params.outputCostPerMillionTokens === undefined ? index : [],
  );
  if (withoutOwnPrice.length === 0) return new Set();
  const { modelEntryPrice } = await import('#core/money/price-list.ts');
  const isUnpriced = (params: PricedParams) => namesPrice(params) || modelEntryPrice(params).price === undefined;
  return new Set(withoutOwnPrice.filter((index) => isUnpriced(models[index]?.gatewayParams ?? {})));
}
