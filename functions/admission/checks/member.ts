// Checks that keys, users and teams have in common: their instance, its models, a budget of zero, an alias, a reference.
import type { Finding } from '#core/finding.ts';
import { parseMoney } from '#core/money.ts';
import { aliasTaken, type TakenAlias } from '#core/rules/alias.ts';
import { instanceIsDeleted, instanceNotFound } from '#core/rules/instance.ts';
import { modelsServed as findUnserved } from '#core/rules/models.ts';
import { type Reference, type Referred, referenceFound } from '#core/rules/references.ts';
import type { ConnectionRef } from '#crds/fragments.ts';
import type { Check, Checked } from '../check.ts';
import type { MemberFacts } from '../facts.ts';

interface MemberSpec {
  readonly connectionRef: ConnectionRef;
  readonly models: string[];
  readonly modelMaxBudget?: Readonly<Record<string, { readonly maxBudget: string }>> | undefined;
  readonly maxBudget?: string | undefined;
}
type Member = Checked<MemberSpec, MemberFacts>;
type MemberCheck = Check<MemberSpec, MemberFacts>;

export const instanceExists: MemberCheck = ({ metadata, spec, facts: { instance } }) => {
  const { instanceRef } = spec.connectionRef;
  if (instance === undefined) return [instanceNotFound(instanceRef, metadata.namespace)];
  return instance.isDeleted ? [instanceIsDeleted(instanceRef)] : [];
};

export const modelsServed: MemberCheck = ({ spec, facts: { instance } }) =>
  instance === undefined ? [] : findUnserved(spec, spec.connectionRef.instanceRef, instance.served);

export const zeroBudget: MemberCheck = ({ spec: { maxBudget, modelMaxBudget = {} } }) => {
  const ofModels = Object.entries(modelMaxBudget).map(
    ([model, one]) => [`spec.modelMaxBudget[${JSON.stringify(model)}].maxBudget`, one.maxBudget] as const,
  );
  return [['spec.maxBudget', maxBudget] as const, ...ofModels].flatMap(([path, value]): Finding[] => {
    if (value === undefined || parseMoney(value) !== 0n) return [];
    const message =
      'a budget of zero is used up from the start, so nothing that it pays for works, free models included; raise it';
    return [{ rule: 'ZeroBudget', path, value, message, effect: 'warn' }];
  });
};

/** Whether another object of the same instance has the alias, or the address, that this one wants. */
export function aliasFree(
  { metadata, spec }: Pick<Member, 'metadata' | 'spec'>,
  path: string,
  alias: string,
  holder: TakenAlias['holder'] | undefined,
): Finding[] {
  const { instanceRef: instance } = spec.connectionRef;
  return holder === undefined ? [] : [aliasTaken({ path, alias, instance, from: metadata.namespace, holder })];
}

/** Where the object's own instance is not found, that is said already, and is the likelier mistake. */
export function refers(
  { metadata: { namespace }, spec, facts }: Member,
  reference: Omit<Reference, 'namespace'>,
  found: Referred | undefined,
): Finding[] {
  const instance = facts.instance === undefined ? undefined : spec.connectionRef.instanceRef;
  const finding = referenceFound({ ...reference, namespace }, found, instance);
  return finding === undefined ? [] : [finding];
}
