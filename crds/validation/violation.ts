// Violations of an object: one field, one rule.

/** The type of a violation, in the words of Kubernetes. */
export type ViolationType =
  | 'Required value'
  | 'Invalid value'
  | 'Unsupported value'
  | 'Duplicate value'
  | 'Not found'
  | 'Too long'
  | 'Too many';

export interface Violation {
  /** Names the rule: one CamelCase word. */
  readonly rule: string;
  /** The type; absent where the field is allowed but unwise. */
  readonly type?: ViolationType;
  /** `spec.models[0].identifier` */
  readonly path: string;
  /** The value of the field; undefined where it is absent. */
  readonly value: unknown;
  /** The message: what must be true, then what to do. */
  readonly message: string;
}
