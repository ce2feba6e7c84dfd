// Reasons why a VirtualKey, a User or a Team is not ready, and where the cause of each lies.

/**
 * `secret`: in the key's Secret, or unknown until the next attempt; each resync reads the Secret. `elsewhere`: in its spec, its instance, its
 * database, or its User and Teams; a Secret that was read stays read until its turn, or until something of the key changes (DESIGN 6, law 8).
 */
const CAUSES = {
  Deleting: 'secret',
  InvalidSpec: 'secret',
  ReconcileFailed: 'secret',
  Pending: 'secret',
  SecretNotFound: 'secret',
  SecretConflict: 'secret',
  DatabaseUnreachable: 'elsewhere',
  InstanceNotFound: 'elsewhere',
  InstanceNotReady: 'elsewhere',
  NamespaceNotAllowed: 'elsewhere',
  AliasTaken: 'elsewhere',
  KeyConflict: 'elsewhere',
  UserNotFound: 'elsewhere',
  UserOfOtherInstance: 'elsewhere',
  UserNotReady: 'elsewhere',
  TeamNotFound: 'elsewhere',
  TeamOfOtherInstance: 'elsewhere',
  TeamNotReady: 'elsewhere',
  Blocked: 'elsewhere',
  Expired: 'elsewhere',
  BudgetExceeded: 'elsewhere',
  ModelNotServed: 'elsewhere',
  // Failures of actions about instances.
  DatabaseNotMigrated: 'elsewhere',
  LedgerNotAdopted: 'elsewhere',
  WorkloadRefused: 'elsewhere',
} as const satisfies Readonly<Record<string, 'secret' | 'elsewhere'>>;

/** A reason without a row does not compile. */
export type MemberReason = keyof typeof CAUSES;

/** A reason of another version counts as one whose cause may be in the Secret. */
export const isOutsideSecret = (reason: string): boolean =>
  Object.hasOwn(CAUSES, reason) && CAUSES[reason as MemberReason] === 'elsewhere';
