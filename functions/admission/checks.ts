// Which rules are there, and in which order are their findings told? The most important first.
import type { KindName } from '#crds/resources.ts';
import type { AloneCheck, Check } from './check.ts';
import { annotations } from './checks/annotations.ts';
import { calendarWindows } from './checks/calendar-windows.ts';
import { credentialNames } from './checks/credential-names.ts';
import { databaseMoved } from './checks/database-moved.ts';
import { databaseSecret } from './checks/database-secret.ts';
import { followsUser } from './checks/follows-user.ts';
import { instanceExists } from './checks/instance-exists.ts';
import { instancePaused } from './checks/instance-paused.ts';
import { keyAliasFree } from './checks/key-alias-free.ts';
import { keyReplaced } from './checks/key-replaced.ts';
import { keySecretFree } from './checks/key-secret-free.ts';
import { membersExist } from './checks/members-exist.ts';
import { modelBudgets } from './checks/model-budgets.ts';
import { modelCredentials } from './checks/model-credentials.ts';
import { modelsInUse } from './checks/models-in-use.ts';
import { modelsServed } from './checks/models-served.ts';
import { pausing } from './checks/pausing.ts';
import { prices } from './checks/prices.ts';
import { providers } from './checks/providers.ts';
import { secretPlaceholders } from './checks/secret-placeholders.ts';
import { sharedCredentials } from './checks/shared-credentials.ts';
import { someModels } from './checks/some-models.ts';
import { spec } from './checks/spec.ts';
import { storeSecret } from './checks/store-secret.ts';
import { strayAnnotations } from './checks/stray-annotations.ts';
import { teamAliasFree } from './checks/team-alias-free.ts';
import { teamExists } from './checks/team-exists.ts';
import { teamsExist } from './checks/teams-exist.ts';
import { userEmailFree } from './checks/user-email-free.ts';
import { userExists } from './checks/user-exists.ts';
import { userKeyAliasFree } from './checks/user-key-alias-free.ts';
import { userKeyNameFree } from './checks/user-key-name-free.ts';
import { workloadEnv } from './checks/workload-env.ts';
import { zeroBudget } from './checks/zero-budget.ts';

/** What one object shows by itself: judged by /mutate, and by /validate again. */
export const ALONE: Readonly<Record<KindName, ReadonlyArray<AloneCheck>>> = {
  GatewayInstance: [
    spec, //              fields, forms, bounds, uniqueness, credentials exactly when required
    sharedCredentials, // no two entries with one Secret, unless the annotation allows it
    annotations, // what an annotation asks for is understood
  ],
  VirtualKey: [
    spec, //              fields, forms, bounds, what never changes
    annotations, //    what an annotation asks for is understood
  ],
  User: [
    spec, //              fields, forms, bounds, what autoCreateKey needs
  ],
  Team: [
    spec, //              fields, forms, bounds
  ],
};

/** What needs other objects, and warnings: judged by /validate only, so that nothing is told twice. */
export const TOGETHER: Readonly<Record<KindName, ReadonlyArray<Check>>> = {
  GatewayInstance: [
    databaseSecret, //    the Secret and its mapped entries exist
    storeSecret, //       the same for the key-value store
    modelCredentials, //  the same for each entry's credentials
    pausing, //           warns: what does not happen while it is paused
    databaseMoved, //     warns: keys and spend stay behind in the old database
    modelsInUse, //       warns: a model goes that keys are restricted to
    someModels, //        warns: an instance without entries serves nothing
    prices, //            warns: a key with a budget cannot use a model without a price
    providers, //         warns: nobody knows where this provider listens
    credentialNames, //   warns: no request carries a credential of this name
    workloadEnv, //       warns: the container sets this variable itself
    strayAnnotations, //  warns: nothing reads this annotation, or not on this kind
  ],
  VirtualKey: [
    instanceExists, //    there is such an instance, and it admits this namespace
    modelsServed, //      the instance has an entry for every model
    keyAliasFree, //      no other key of the instance has the alias (advice: the claim decides)
    userExists, //        the user is there, on the same instance
    teamExists, //        the team is there, on the same instance
    keySecretFree, //     the Secret is not somebody else's
    instancePaused, //    warns: nothing of this is acted on before the instance goes on
    followsUser, //       warns: the User decides about this key
    secretPlaceholders, // warns: an entry of the Secret holds what only looks like a placeholder
    modelBudgets, //      warns: a budget for a model bounds nothing, or everything
    calendarWindows, //   warns: windows begin where nobody would look for them
    zeroBudget, //        warns: a budget of nothing means never
    strayAnnotations, //  warns: nothing reads this annotation, or not on this kind
  ],
  User: [
    instanceExists, //    there is such an instance, and it admits this namespace
    modelsServed, //      the instance has an entry for every model
    userEmailFree, //     no other user of the instance has the address
    userKeyAliasFree, //  no other key of the instance has the alias
    teamsExist, //        the teams are there, on the same instance
    instancePaused, //    warns: nothing of this is acted on before the instance goes on
    userKeyNameFree, //   warns: a VirtualKey of the user's name stands in the way
    keyReplaced, //       warns: this edit gives the user's key a new value
    zeroBudget, //        warns: a budget of nothing means never
    strayAnnotations, //  warns: nothing reads this annotation, or not on this kind
  ],
  Team: [
    instanceExists, //    there is such an instance, and it admits this namespace
    modelsServed, //      the instance has an entry for every model
    teamAliasFree, //     no other team of the instance has the alias
    instancePaused, //    warns: nothing of this is acted on before the instance goes on
    membersExist, //      warns: a member that is not there (yet)
    zeroBudget, //        warns: a budget of nothing means never
    strayAnnotations, //  warns: nothing reads this annotation, or not on this kind
  ],
};
