// Checks of a GatewayInstance with its Secrets, its keys and the listed prices.

import { CREDENTIAL_NAMES } from '#core/models/providers.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Finding } from '#core/rules/finding.ts';
import { noAddress, noModels, notPriced, sharedCredentials } from '#core/rules/instance.ts';
import { checkCredentials, checkDatabaseSecret, checkStoreSecret, toMember } from '#core/rules/secrets.ts';
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import type { Check } from '../check.ts';
import { type InstanceFacts, MAX_KEYS } from '../facts.ts';
import { annotationOf } from '../subject.ts';

type InstanceCheck = Check<GatewayInstanceSpec, InstanceFacts>;

export const sharesNoCredentials: Check<GatewayInstanceSpec> = ({ metadata, spec, old }) =>
  sharedCredentials(spec.models, annotationOf(metadata, SHARED_CREDENTIALS_ANNOTATION), old()?.models);

export const databaseSecret: InstanceCheck = ({ metadata: { namespace }, spec: { databaseSecretRef: ref }, facts }) =>
  checkDatabaseSecret(ref, namespace, facts.secrets.get(ref.nameRef));

export const storeSecret: InstanceCheck = ({ metadata: { namespace }, spec: { redisSecretRef: ref }, facts }) =>
  checkStoreSecret(ref, namespace, facts.secrets.get(ref.nameRef));

export const modelCredentials: InstanceCheck = ({ metadata: { namespace }, spec, facts }) =>
  spec.models.flatMap(({ modelCredentials: ref, ...entry }, index) =>
    ref === undefined ? [] : checkCredentials(ref, { ...entry, index }, namespace, facts.secrets.get(ref.nameRef)),
  );

const MAX_NAMED = 5;

export const modelsInUse: InstanceCheck = ({ facts: { removedModels, keys } }) => {
  const uses = keys.flatMap((key) =>
    modelsOf(key).flatMap((model) => (removedModels.has(model) ? { key, model } : [])),
  );
  const byModel = Map.groupBy(uses, ({ model }) => model);
  return [...removedModels].flatMap((model): Finding[] => {
    const restricted = (byModel.get(model) ?? []).map(({ key }) => key);
    if (restricted.length === 0) return [];
    const names = restricted.slice(0, MAX_NAMED).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
    const more = restricted.length > MAX_NAMED ? `, and ${restricted.length - MAX_NAMED} more` : '';
    const count = `${keys.length >= MAX_KEYS ? 'at least ' : ''}${restricted.length}`;
    const message = `${JSON.stringify(model)} is no longer served, and ${count} of the keys are restricted to it: ${names.join(', ')}${more}; change their spec.models, or keep an entry of this name`;
    return [{ rule: 'ModelInUse', path: 'spec.models', value: undefined, message, effect: 'warn' }];
  });
};

const modelsOf = ({ spec }: KubeObject): ReadonlyArray<string> =>
  isMap(spec) && Array.isArray(spec.models)
    ? [...new Set(spec.models.filter((model) => typeof model === 'string'))]
    : [];

export const someModels: InstanceCheck = ({ spec }) => noModels(spec.models);

export const addresses: InstanceCheck = ({ spec, didYouMean }) =>
  spec.models.flatMap((entry, index) => noAddress(entry, index, didYouMean));

export const prices: InstanceCheck = ({ spec, facts }) =>
  spec.models.flatMap((entry, index) => (facts.unpriced.has(index) ? notPriced(entry, index) : []));

export const credentialNames: InstanceCheck = ({ spec, didYouMean }) =>
  spec.models.flatMap(({ modelCredentials: ref }, index) =>
    Object.keys(ref?.keys ?? {}).flatMap((name): Finding[] => {
      if (CREDENTIAL_NAMES.includes(name)) return [];
      const advice =
        didYouMean(name, CREDENTIAL_NAMES) || `; remove it, or choose among ${CREDENTIAL_NAMES.join(', ')}`;
      const path = `spec.models[${index}].modelCredentials.keys${toMember(name)}`;
      const message = `no provider reads a credential of this name${advice}`;
      return [{ rule: 'UnknownCredentialName', path, value: undefined, message, effect: 'warn' }];
    }),
  );
