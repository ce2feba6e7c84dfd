// What is wrong with an object, and where: one field, one rule.

/** What Kubernetes calls what is wrong with a field. */
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
  /** Absent where nothing is wrong, but unwise. */
  readonly type?: ViolationType;
  /** `spec.models[0].identifier` */
  readonly path: string;
  /** What stands there; undefined where nothing does. */
  readonly value: unknown;
  /** What must be true; what to do. */
  readonly message: string;
}
