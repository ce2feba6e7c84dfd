// Checks of a GatewayInstance with its Secrets, its VirtualKeys and the listed prices.

import { CREDENTIAL_NAMES } from '#core/models/providers.ts';
import type { Finding } from '#core/rules/finding.ts';
import { noAddress, noModels, notPriced, sharedCredentials } from '#core/rules/instance.ts';
import { toMember } from '#core/rules/secrets.ts';
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import type { Check } from '../check.ts';
import type { InstanceFacts } from '../facts/instance.ts';
import { annotationOf } from '../subject.ts';

type InstanceCheck = Check<GatewayInstanceSpec, InstanceFacts>;

export const sharesNoCredentials: Check<GatewayInstanceSpec> = ({ metadata, spec, old }) =>
  sharedCredentials(spec.models, annotationOf(metadata, SHARED_CREDENTIALS_ANNOTATION), old()?.models);

export const databaseSecret: InstanceCheck = ({ facts }) => facts.secrets.get('database') ?? [];

export const storeSecret: InstanceCheck = ({ facts }) => facts.secrets.get('store') ?? [];

export const modelCredentials: InstanceCheck = ({ spec, facts }) =>
  spec.models.flatMap((_, index) => facts.secrets.get(index) ?? []);

const MAX_NAMED = 5;

export const modelsInUse: InstanceCheck = ({ facts: { removedModels, restrictedKeys, hasMoreKeys } }) =>
  [...removedModels].flatMap((model): Finding[] => {
    const paths = restrictedKeys.flatMap(({ path, models }) => (models.includes(model) ? path : []));
    if (paths.length === 0) return [];
    const names = paths.slice(0, MAX_NAMED);
    const more = paths.length > MAX_NAMED ? `, and ${paths.length - MAX_NAMED} more` : '';
    const count = `${hasMoreKeys ? 'at least ' : ''}${paths.length}`;
    const message = `${JSON.stringify(model)} is no longer served, and VirtualKeys are restricted to it (${count}): ${names.join(', ')}${more}; change their spec.models, or keep a model entry of this name`;
    return [{ rule: 'ModelInUse', path: 'spec.models', value: undefined, message, effect: 'warn' }];
  });

export const warnOfNoModels: InstanceCheck = ({ spec }) => noModels(spec.models);

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
