// Every check of every kind, in the order of its findings: refusals first, the most important first.

import { createLazy } from '#core/caches/lazy.ts';
import type { Finding } from '#core/rules/finding.ts';
import { createDidYouMean } from '#core/rules/nearest-name.ts';
import type { KindName, Schemas } from '#crds/kinds/kinds.ts';
import { validate } from '#crds/validation/validate.ts';
import type { Check, Readable } from './check.ts';
import * as ofInstance from './checks/instance.ts';
import { keySecretFree, templateHarmless, timeZoneKnown, timeZoneUsed, windowBudgets } from './checks/key.ts';
import * as ofMember from './checks/member.ts';
import * as ofUser from './checks/user.ts';
import { type FactContext, instanceFacts, keyFacts, teamFacts, userFacts } from './facts.ts';
import type { Draft } from './subject.ts';

/** Findings about an object: by itself, and, where the cluster may be asked, with the objects that it refers to. */
export type FindFindings = (
  object: Draft,
  old: Draft | undefined,
  ask: FactContext | undefined,
) => Promise<ReadonlyArray<Finding>>;

/** Checks that keys, users and teams have in common. */
const OF_MEMBERS = [
  ofMember.instanceExists, //         there is such an instance, and it admits this namespace
  ofMember.modelsServed, //           the instance has an entry for every model
  ofMember.aliasesFree, //            no other object of the instance has the alias or the address
  ofMember.referencesFound, //        the user and the teams are there, on the same instance
];

export const CHAIN: Readonly<Record<KindName, FindFindings>> = {
  GatewayInstance: chain('GatewayInstance', {
    load: () => import('#crds/kinds/gateway-instance.ts'),
    gather: instanceFacts,
    alone: [
      ofInstance.sharesNoCredentials, // no two entries with one Secret, unless the annotation allows it
    ],
    together: [
      ofInstance.databaseSecret, //      the Secret and its mapped entries are there
      ofInstance.storeSecret, //         the same for the key-value store
      ofInstance.modelCredentials, //    the same for the credentials of each entry
      ofInstance.modelsInUse, //         warns: keys are restricted to a removed model
      ofInstance.warnOfNoModels, //          warns: an instance without entries serves nothing
      ofInstance.addresses, //           warns: the provider is unknown, and there is no address to call
      ofInstance.prices, //              warns: no key can use a model without a price
      ofInstance.credentialNames, //     warns: no provider reads a credential of this name
    ],
  }),
  VirtualKey: chain('VirtualKey', {
    load: () => import('#crds/kinds/virtual-key.ts'),
    gather: keyFacts,
    alone: [
      timeZoneKnown, //                  there is a time zone of this name
    ],
    together: [
      ...OF_MEMBERS,
      keySecretFree, //                  the Secret is not another's
      templateHarmless, //               its labels and annotations are for no other software
      ofMember.modelBudgets, //          warns: a model's budget limits nothing, as nothing serves the model
      windowBudgets, //                  warns: two windows are equally long, or a shorter one has more money
      timeZoneUsed, //                   warns: Rolling windows have no time zone
      ofMember.zeroBudget, //            warns: a budget of zero means never
    ],
  }),
  User: chain('User', {
    load: () => import('#crds/kinds/user.ts'),
    gather: userFacts,
    together: [
      ...OF_MEMBERS,
      ofUser.keyNameFree, //             warns: another VirtualKey has the user's name
      ofUser.keyReplaced, //             warns: this edit gives the user's key a new value
      ofMember.zeroBudget, //            warns: a budget of zero means never
    ],
  }),
  Team: chain('Team', {
    load: () => import('#crds/kinds/team.ts'),
    gather: teamFacts,
    together: [...OF_MEMBERS, ofMember.zeroBudget],
  }),
};

interface Checks<Spec, Facts> {
  /** The schemas of the kind, built with its first review: those of the other kinds would cost a cold start 15 ms. */
  readonly load: () => Promise<{ readonly schemas: Schemas<Spec> }>;
  readonly gather: (of: Readable<Spec>, ask: FactContext) => Promise<Facts>;
  /** Checks of the object alone: by /mutate, and by /validate again. */
  readonly alone?: ReadonlyArray<Check<Spec>>;
  /** Checks with facts: by /validate only. */
  readonly together: ReadonlyArray<Check<Spec, Facts>>;
}

/**
 * Findings of one check: one for each model that a key names, and more. 512 model entries with 32 credentials each have
 * 16,384, of 600 bytes each, and a review waits for facts about the stored object with them.
 */
const MAX_FINDINGS = 2048;

/** The schema comes first; a spec that is not readable is not checked further. */
function chain<Spec, Facts>(name: KindName, { load, gather, alone = [], together }: Checks<Spec, Facts>): FindFindings {
  const loaded = createLazy(load);
  return async ({ metadata, spec: given }, old, ask) => {
    const kind = { ...(await loaded()).schemas, kind: name };
    const { violations, spec } = validate(kind, { metadata, spec: given }, old);
    const refused = violations.map((violation): Finding => ({ ...violation, effect: 'refuse' }));
    if (spec === undefined) return refused;
    const of = { metadata, spec, old: () => old && validate(kind, old).spec, didYouMean: createDidYouMean() };
    const found = [...refused, ...alone.flatMap((check) => check({ ...of, facts: undefined }))];
    if (ask === undefined) return found;
    const facts = await gather(of, ask);
    return [...found, ...together.flatMap((check) => check({ ...of, facts }).slice(0, MAX_FINDINGS))];
  };
}
