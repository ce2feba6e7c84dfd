// How is a rule that a schema cannot say written once, for the API server and for us?

/** One rule about one value: `cel` is what the API server runs, `holds` the same in TypeScript; a test proves that they agree. */
export interface Rule<T> {
  /** Names the rule in findings and tests: one CamelCase word. */
  readonly id: string;
  /** CEL over `self`, and over `oldSelf` in a rule about change (which the API server then judges on update only). */
  readonly cel: string;
  /** `what is wrong; what to do` */
  readonly message: string;
  /** The member below `self` that a finding points at, e.g. `overlap`; without it `self`. */
  readonly at?: string;
  /** The members that `holds` looks at: it is asked where these are well-formed, whatever the others are. Default: all. */
  readonly reads?: readonly string[];
  /** Whether the rule holds; `old` is the value before an update, absent on create. */
  readonly holds: (self: T, old?: T) => boolean;
}

/** Whether the rule compares with what was there before; such a rule is silent on create. */
export const changes = (rule: Rule<never>): boolean => rule.cel.includes('oldSelf');
