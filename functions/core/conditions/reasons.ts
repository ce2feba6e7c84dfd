// Reasons of conditions and events: one union, one table. docs/reference/conditions.md is generated from it.

/** Condition types, in the order in which objects show them. */
export const CONDITION_TYPES = [
  'Ready',
  'DatabaseReady',
  'StoreReady',
  'WorkloadReady',
  'RouteReady',
  'ModelsReady',
  'LedgerAdopted',
  'DeletionsGuarded',
  'Paused',
  'SpecValid',
  'Rotation',
  'SoftBudgetReached',
  'PolicyMet',
] as const;

export type ConditionType = (typeof CONDITION_TYPES)[number];
export type Severity = 'Normal' | 'Warning';

interface ReasonRow {
  /** The conditions that can have the reason, and their status then. Absent: none, only an event has it. */
  readonly conditions?: Readonly<Partial<Record<ConditionType, 'True' | 'False' | 'Unknown'>>>;
  /** The severity of its event. Absent: there is no event. */
  readonly event?: Severity;
  /** The meaning of the reason, and the next step. The message of a condition adds names, amounts and times. */
  readonly text: string;
  /** The object is not ready, and the reconciler has nothing left to do for it. */
  readonly isConverged?: true;
  /**
   * Whether the policy of a VirtualKey that is not ready for this reason is `blocked`, so that the gateway refuses the
   * key. With `missingOwnerText`, `chargedScopes` finds the cause; without it, the cause is in the object itself
   * (functions/reconcile/key/own-blockers.ts). False: the key works, or is refused for another reason: its expiry, a
   * budget, the scope of its User or Team, or the lack of a policy.
   */
  readonly isBlocking?: boolean;
  /**
   * The cause is not in the Secret of the VirtualKey, but in its spec or annotations, the instance, its database, the
   * User or the Teams. So a resync need not read the Secret again before its turn, or before something of the
   * VirtualKey changes (DESIGN 6). Absent: the cause may be in the Secret, so each resync reads it.
   */
  readonly needsNoSecretRead?: true;
  /**
   * The text for clients whose VirtualKey is blocked because the User or a Team that it names cannot be charged.
   * Absent: they get the text of an error code (docs/use/errors.md). Only a row with `isBlocking: true` may have it.
   */
  readonly missingOwnerText?: string;
  /** The page that explains the reason, below docs/. */
  readonly page: string;
}

/** A reason for which an object is not ready must have `isBlocking`. */
type BlockingDecision =
  | {
      readonly conditions?: { readonly Ready?: 'True' };
      readonly isBlocking?: never;
      readonly missingOwnerText?: never;
    }
  | { readonly conditions: ReasonRow['conditions']; readonly isBlocking: false; readonly missingOwnerText?: never }
  | { readonly conditions: ReasonRow['conditions']; readonly isBlocking: true };

const CAUSE = { conditions: { Ready: 'False' }, event: 'Warning' } as const;
const NO_SECRET_READ = { ...CAUSE, needsNoSecretRead: true } as const;
/** Causes for which the models of a VirtualKey, User or Team are unknown. */
const ACCESS = {
  ...NO_SECRET_READ,
  conditions: { Ready: 'False', ModelsReady: 'Unknown' },
  isBlocking: false,
} as const;
/** Causes in the database or the counter store. No workload is created while there is one. */
const DATABASE = {
  ...CAUSE,
  isBlocking: false,
  conditions: { Ready: 'False', DatabaseReady: 'False', WorkloadReady: 'False' },
} as const;
const STORE = {
  ...CAUSE,
  isBlocking: false,
  conditions: { Ready: 'False', StoreReady: 'False', WorkloadReady: 'False' },
} as const;
const SECRETS = {
  ...CAUSE,
  isBlocking: false,
  conditions: { ...DATABASE.conditions, StoreReady: 'False', ModelsReady: 'False' },
} as const;
const WORKLOAD = { ...CAUSE, isBlocking: false, conditions: { Ready: 'False', WorkloadReady: 'False' } } as const;
/** Causes that HTTPRoute and Ingress have in common with the workload. */
const PARTS = { ...WORKLOAD, conditions: { ...WORKLOAD.conditions, RouteReady: 'False' } } as const;
/** Causes outside the instance itself: it is Ready in spite of them. */
const ROUTE = { conditions: { RouteReady: 'False' } } as const;
const MODELS = { ...CAUSE, isBlocking: false, conditions: { Ready: 'False', ModelsReady: 'False' } } as const;

/**
 * The table. A VirtualKey, User or Team is not ready for the first of its causes in this order. A reason without a row
 * does not compile.
 */
const TABLE = {
  Ready: {
    conditions: {
      Ready: 'True',
      DatabaseReady: 'True',
      StoreReady: 'True',
      WorkloadReady: 'True',
      RouteReady: 'True',
      ModelsReady: 'True',
    },
    event: 'Normal',
    text: 'It works.',
    page: 'install/quickstart.md',
  },
  Deleting: {
    ...CAUSE,
    isBlocking: false,
    conditions: ACCESS.conditions,
    text: 'The object is being deleted, and the message shows what the deletion waits for.',
    page: 'install/uninstall.md',
  },
  InvalidSpec: {
    ...CAUSE,
    isBlocking: false,
    conditions: {
      Ready: 'False',
      DatabaseReady: 'Unknown',
      StoreReady: 'Unknown',
      WorkloadReady: 'Unknown',
      RouteReady: 'Unknown',
      ModelsReady: 'Unknown',
    },
    text: 'The spec cannot be read; an older CRD accepted it. Correct the fields that the message names.',
    page: 'operate/admission.md#while-the-webhook-is-down',
  },
  InstanceNotFound: {
    ...ACCESS,
    text: 'No GatewayInstance of this name allows the namespace. Create it, correct the reference, or ask its owner.',
    page: 'operate/admission.md#while-the-webhook-is-down',
  },
  NamespaceNotAllowed: {
    ...ACCESS,
    text: 'The GatewayInstance no longer allows the namespace. Ask its owner to change `spec.allowedNamespaces`.',
    page: 'operate/admission.md#while-the-webhook-is-down',
  },
  InstanceNotReady: {
    ...ACCESS,
    text: 'The GatewayInstance is not ready or is paused. Look at its conditions.',
    page: 'operate/gateways.md',
  },
  AliasTaken: {
    ...ACCESS,
    text: 'Another object has the alias or e-mail address on this instance. Choose another, or delete that object.',
    page: 'guides/move-or-restore-a-key.md#retained-keys',
  },
  ReconcileFailed: {
    ...CAUSE,
    isBlocking: false,
    conditions: ACCESS.conditions,
    text: 'An action of the reconciler failed; the message has the cause. The next resync tries again.',
    page: 'operate/troubleshooting.md#pending-or-reconcilefailed',
  },
  DatabaseUnreachable: {
    ...DATABASE,
    conditions: { ...DATABASE.conditions, ModelsReady: 'Unknown' },
    needsNoSecretRead: true,
    text: 'PostgreSQL refused or did not answer. The message shows what to check.',
    page: 'operate/database.md',
  },
  DatabaseNotMigrated: {
    ...DATABASE,
    needsNoSecretRead: true,
    text: 'PostgreSQL answers, but the schema or the instance could not be created in it.',
    page: 'operate/database.md',
  },
  LedgerNotAdopted: {
    ...DATABASE,
    needsNoSecretRead: true,
    text: 'The annotation `adopt-ledger` names a ledger that cannot be adopted. Correct it, or remove it.',
    page: 'guides/move-or-restore-a-key.md#an-instance-that-is-created-again',
  },
  Pending: {
    ...CAUSE,
    isBlocking: false,
    conditions: ACCESS.conditions,
    text: 'The reconciler has not finished yet; the next resync continues.',
    page: 'operate/troubleshooting.md#pending-or-reconcilefailed',
  },
  SecretUnreadable: {
    ...SECRETS,
    text: 'A Secret of the instance could not be read. Look at the rights of the reconciler.',
    page: 'install/kubernetes.md',
  },
  SecretNotFound: {
    ...SECRETS,
    text: 'A Secret that the instance names does not exist, or the Secret of a VirtualKey could not be created.',
    page: 'reference/providers.md#addresses-and-credentials',
  },
  SecretKeyMissing: {
    ...SECRETS,
    text: 'A Secret lacks a key that the instance names. Add it to the Secret, or correct the name.',
    page: 'reference/providers.md#addresses-and-credentials',
  },
  SecretKeyInvalid: {
    ...SECRETS,
    text: 'A value in a Secret of the instance cannot be used. The message shows what to write.',
    page: 'reference/fields.md#gatewayinstance',
  },
  SecretConflict: {
    ...CAUSE,
    isBlocking: false,
    text: 'Another Secret has the name that the Secret of the VirtualKey would get. Delete it, or choose another name.',
    page: 'guides/move-or-restore-a-key.md',
  },
  StoreUnreachable: {
    ...STORE,
    text: 'Redis refused or did not answer. The message shows what to check.',
    page: 'operate/redis.md',
  },
  StoreEvicts: {
    ...STORE,
    text: 'Redis may delete counters when its memory is full. Set `maxmemory-policy noeviction`.',
    page: 'operate/redis.md',
  },
  StoreNotShared: {
    ...STORE,
    text: 'Several gateway processes would each have a `memory` store of their own. Name a Redis, or scale to 1.',
    page: 'operate/redis.md',
  },
  KeyConflict: {
    ...NO_SECRET_READ,
    isBlocking: false,
    text: "Another VirtualKey has the User's name. Set `autoCreateKey: false`, or create the User under another name. Deleting the VirtualKey ends its key value.",
    page: 'reference/fields.md#user',
  },
  UserNotFound: {
    ...NO_SECRET_READ,
    isBlocking: true,
    text: 'The User that the VirtualKey names does not exist or is being deleted. Create it, or correct the name.',
    missingOwnerText: 'The user that this API key names is gone',
    page: 'guides/delete-keys.md',
  },
  UserOfOtherInstance: {
    ...NO_SECRET_READ,
    isBlocking: true,
    text: 'The User that the VirtualKey names belongs to another instance. Choose a User of the same instance.',
    missingOwnerText: 'The user that this API key names is not of this gateway',
    page: 'operate/admission.md#while-the-webhook-is-down',
  },
  UserNotReady: {
    ...NO_SECRET_READ,
    isBlocking: true,
    text: 'The User that the VirtualKey names cannot be charged. Look at its conditions.',
    missingOwnerText: 'The user that this API key names is not ready',
    page: 'guides/find-out-why-a-request-was-refused.md',
  },
  TeamOfOtherInstance: {
    ...NO_SECRET_READ,
    isBlocking: true,
    text: 'A Team that the VirtualKey, its User or the key policy names belongs to another instance. Choose a Team of the same instance.',
    missingOwnerText: 'A team that this API key or its user names is not of this gateway',
    page: 'operate/admission.md#while-the-webhook-is-down',
  },
  TeamNotFound: {
    ...NO_SECRET_READ,
    isBlocking: true,
    text: 'A Team that the VirtualKey, its User or the key policy names does not exist or is being deleted. Create it, or correct the name.',
    missingOwnerText: 'A team that this API key or its user names is gone',
    page: 'guides/delete-keys.md',
  },
  TeamNotReady: {
    ...NO_SECRET_READ,
    isBlocking: true,
    text: 'A Team that the VirtualKey, its User or the key policy names cannot be charged. Look at its conditions.',
    missingOwnerText: 'A team that this API key or its user names is not ready',
    page: 'guides/find-out-why-a-request-was-refused.md',
  },
  Blocked: {
    ...NO_SECRET_READ,
    isBlocking: true,
    isConverged: true,
    text: '`spec.blocked` is true on the VirtualKey, its User, one of its Teams or the Team of the key policy.',
    page: 'use/errors.md',
  },
  Expired: {
    ...NO_SECRET_READ,
    isBlocking: false,
    conditions: { Ready: 'False', Rotation: 'False' },
    isConverged: true,
    text: 'The lifetime of the VirtualKey is over. Lengthen or clear `spec.duration`.',
    page: 'guides/rotate-keys-on-a-schedule.md',
  },
  BudgetExceeded: {
    ...NO_SECRET_READ,
    isBlocking: false,
    conditions: MODELS.conditions,
    isConverged: true,
    text: 'A budget is spent. Raise `spec.maxBudget`, or wait for the end of its window.',
    page: 'use/errors.md#budget_exceeded',
  },
  PolicyViolated: {
    ...NO_SECRET_READ,
    isBlocking: false,
    conditions: { Ready: 'False', PolicyMet: 'False' },
    isConverged: true,
    text: 'The VirtualKey lacks what the key policy of its namespace requires, or lists models outside the policy. It works with the other models; `Ready` is False only if no model is left.',
    page: 'guides/limit-namespaces.md#virtualkeys-from-before-the-policy',
  },
  ModelNotServed: {
    ...NO_SECRET_READ,
    isBlocking: false,
    conditions: MODELS.conditions,
    text: 'The instance has no model entry for a model of the list. Correct the name, or add a model entry.',
    page: 'operate/admission.md#while-the-webhook-is-down',
  },
  NoModels: {
    ...MODELS,
    text: 'The instance has no model entries, so it serves no model. Add a model entry for each model.',
    page: 'reference/providers.md',
  },
  ModelNotPriced: {
    ...MODELS,
    text: 'A model entry has no price, so no VirtualKey can use it. Set its prices; `"0"` is free.',
    page: 'reference/prices.md',
  },
  ProviderUnknown: {
    ...MODELS,
    text: 'The provider of a model entry is unknown, and it has no `apiBase`. Correct the provider, or set `apiBase`.',
    page: 'reference/providers.md#addresses-and-credentials',
  },
  AddressMissing: {
    ...MODELS,
    text: 'The provider of a model entry has no address of its own. Set `apiBase`.',
    page: 'reference/providers.md#addresses-and-credentials',
  },
  SharedCredentials: {
    conditions: { ModelsReady: 'False' },
    text: 'Two model entries use one Secret; both work. Give each its own Secret, or set the annotation `shared-credentials`.',
    page: 'reference/providers.md#addresses-and-credentials',
  },
  SnapshotTooLarge: {
    ...MODELS,
    text: 'The compiled models do not fit into a ConfigMap, so the previous ones stay in use. Shorten the list of models.',
    page: 'operate/gateways.md',
  },
  SnapshotNotPublished: {
    ...CAUSE,
    isBlocking: false,
    text: 'The compiled models have not been published to the gateway yet.',
    page: 'operate/gateways.md',
  },
  DiscoveryFailed: {
    ...WORKLOAD,
    text: 'The API server did not answer whether Knative is installed. The next resync asks again, or set `spec.workload.type`.',
    page: 'install/knative.md',
  },
  ConfigMapNotFound: {
    ...WORKLOAD,
    text: 'The ConfigMap of `spec.workload.caConfigMapRef` does not exist, or has more than 1,000 keys. Create it, correct the name, or keep only the authorities in it. Running Pods continue.',
    page: 'operate/gateways.md#private-authorities',
  },
  KnativeNotInstalled: {
    ...WORKLOAD,
    text: 'Knative Serving is not installed. Install it, or set `spec.workload.type: Deployment`.',
    page: 'install/knative.md',
  },
  WorkloadUnreadable: {
    ...PARTS,
    text: 'The reconciler cannot read the workload, the HTTPRoute or the Ingress, as the message shows. If the message contains `forbidden`, apply `access.yaml` of this version.',
    page: 'install/kubernetes.md',
  },
  WorkloadRefused: {
    ...WORKLOAD,
    needsNoSecretRead: true,
    text: 'The API server refused or could not write an object of the workload, as the message shows.',
    page: 'operate/gateways.md',
  },
  WorkloadConflict: {
    ...PARTS,
    text: 'An object of another owner has a name that the workload, the HTTPRoute or the Ingress needs. Delete it, or rename the instance.',
    page: 'operate/gateways.md',
  },
  ReplicaFailure: {
    ...WORKLOAD,
    text: 'The Deployment cannot create Pods, as the message shows.',
    page: 'operate/gateways.md',
  },
  ProgressDeadlineExceeded: {
    ...WORKLOAD,
    text: 'The Pods of the Deployment did not become available in time. The message has the command that shows why.',
    page: 'operate/gateways.md',
  },
  WorkloadNotReady: {
    ...WORKLOAD,
    text: 'The workload is starting.',
    page: 'operate/gateways.md',
  },
  NotSupported: {
    ...ROUTE,
    text: 'The workload is no Deployment, so it gets no HTTPRoute or Ingress. Remove the field; on Knative create a DomainMapping.',
    page: 'install/knative.md',
  },
  HTTPRouteNotInstalled: {
    ...ROUTE,
    text: 'The cluster does not serve HTTPRoutes. Install the CRDs of Gateway API, or use `spec.ingress`.',
    page: 'install/first-gateway.md#reach-a-gateway-from-outside',
  },
  RouteRefused: {
    ...ROUTE,
    text: 'The API server refused or could not write the HTTPRoute or the Ingress, as the message shows.',
    page: 'install/first-gateway.md#reach-a-gateway-from-outside',
  },
  RouteNotReady: {
    ...ROUTE,
    text: 'No Gateway has taken the HTTPRoute yet, or the Ingress has no address yet. The message shows what to check.',
    page: 'install/first-gateway.md#reach-a-gateway-from-outside',
  },
  Adopted: {
    conditions: { LedgerAdopted: 'True' },
    text: 'The instance continues the ledger of a deleted instance.',
    page: 'guides/move-or-restore-a-key.md#an-instance-that-is-created-again',
  },
  LedgerInUse: {
    conditions: { LedgerAdopted: 'False' },
    text: 'The instance already has a ledger and keeps it. Remove the annotation, or create the instance anew.',
    page: 'guides/move-or-restore-a-key.md#an-instance-that-is-created-again',
  },
  LedgerEmpty: {
    event: 'Warning',
    text: 'The database has lost the rows of the instance, so every budget is full again. Restore a backup if there is one.',
    page: 'operate/database.md',
  },
  TooManyDeletions: {
    conditions: { DeletionsGuarded: 'True' },
    event: 'Warning',
    text: 'A resync would remove more than is plausible, so it removes nothing.',
    page: 'guides/delete-keys.md#the-deletion-guard',
  },
  Paused: {
    conditions: { Paused: 'True' },
    text: '`spec.paused` is true: only deletion is acted on, and what runs continues.',
    page: 'reference/fields.md#gatewayinstance',
  },
  SecretMetadataNotAllowed: {
    conditions: { SpecValid: 'False' },
    text: 'The operator does not allow the prefix of a label or annotation of the Secret. Remove it, or have the prefix allowed.',
    page: 'operate/admission.md#while-the-webhook-is-down',
  },
  Scheduled: {
    conditions: { Rotation: 'True' },
    text: 'One key value of the VirtualKey works; the message has the time of the next rotation.',
    page: 'guides/rotate-keys-on-a-schedule.md',
  },
  Overlap: {
    conditions: { Rotation: 'True' },
    text: 'The previous key value of the VirtualKey still works, until the time in the message.',
    page: 'guides/rotate-keys-on-a-schedule.md',
  },
  BelowSoftBudget: {
    conditions: { SoftBudgetReached: 'False' },
    text: 'The spend is below `spec.softBudget`.',
    page: 'guides/set-budgets.md#warnings-before-the-end',
  },
  SoftBudgetReached: {
    conditions: { SoftBudgetReached: 'True' },
    event: 'Warning',
    text: '`spec.softBudget` is spent. The VirtualKey works until `spec.maxBudget` is spent.',
    page: 'guides/set-budgets.md#warnings-before-the-end',
  },
  PolicyMet: {
    conditions: { PolicyMet: 'True' },
    text: 'The VirtualKey has what the key policy of its namespace requires, and lists no other models.',
    page: 'guides/limit-namespaces.md',
  },
  BudgetUsed: {
    event: 'Warning',
    text: 'The spend has reached 50 (severity Normal), 80 or 95 per cent of a budget. On an instance: of the budget of a namespace.',
    page: 'guides/set-budgets.md#warnings-before-the-end',
  },
  KeyCreated: {
    event: 'Normal',
    text: 'A key value is in the Secret of the VirtualKey, and no earlier value works.',
    page: 'guides/rotate-a-leaked-key.md',
  },
  KeyNotRestored: {
    event: 'Warning',
    text: 'The VirtualKey has the alias of a deleted one, but not its Secret. So it got a new key value, and its spend begins at zero.',
    page: 'guides/back-up-and-restore.md',
  },
  KeyRotated: {
    event: 'Normal',
    text: 'A new key value is in the Secret of the VirtualKey; the previous one works until the time in the message.',
    page: 'guides/rotate-keys-on-a-schedule.md',
  },
  KeyReplaced: {
    event: 'Normal',
    text: 'The VirtualKey of a User is replaced, because its alias or instance changed. Clients need the new value.',
    page: 'reference/fields.md#user',
  },
  KeyRetained: {
    event: 'Normal',
    text: 'The VirtualKey is deleted, and its key value continues to work. Another VirtualKey can adopt it. To end the value, delete its Secret.',
    page: 'guides/move-or-restore-a-key.md#retained-keys',
  },
  TooManyRetained: {
    event: 'Warning',
    text: 'The VirtualKey has `deletionPolicy: Retain`, and its namespace has 500 retained keys on the instance. The deletion waits, and the key value works.',
    page: 'guides/move-or-restore-a-key.md#retained-keys',
  },
} as const satisfies Readonly<Record<string, ReasonRow & BlockingDecision>>;

export type Reason = keyof typeof TABLE;

export const REASONS: Readonly<Record<Reason, ReasonRow>> = TABLE;

type ReasonWith<Row> = { [Name in Reason]: (typeof TABLE)[Name] extends Row ? Name : never }[Reason];

/** The reasons for which a VirtualKey is blocked because its User or a Team cannot be charged. */
export type MissingOwnerReason = ReasonWith<{ readonly isBlocking: true; readonly missingOwnerText: string }>;

/** The reasons for which a VirtualKey, User or Team is blocked whose cause is in the object itself. */
export type OwnBlockingReason = Exclude<ReasonWith<{ readonly isBlocking: true }>, MissingOwnerReason>;

/**
 * A reason without a row: the name of a rule about a spec, a reason of the workload's controller, or a reason that was
 * read from a status.
 */
export type OtherReason = string & { readonly [OTHER]: true };
declare const OTHER: unique symbol;

// The brand exists in types only.
export const toOtherReason = (text: string): OtherReason => text as OtherReason;

/** The row of a reason that may be of another version. */
export const rowOf = (reason: string | undefined): ReasonRow | undefined =>
  reason !== undefined && Object.hasOwn(REASONS, reason) ? REASONS[reason as Reason] : undefined;

const ORDER: ReadonlyMap<string, number> = new Map(Object.keys(REASONS).map((reason, index) => [reason, index]));

/** Compares two reasons by their positions in the table. */
export const byOrder = (one: Reason, other: Reason): number => (ORDER.get(one) ?? 0) - (ORDER.get(other) ?? 0);
