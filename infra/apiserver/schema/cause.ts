// What does the API server say about one wrong field?

/** One entry of `Status.details.causes`: the field, the reason, and the words after `field: ` in the Status message. */
export type Cause = {
  readonly field: string;
  readonly reason: CauseReason;
  readonly message: string;
};

export type CauseReason =
  | 'FieldValueInvalid'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTypeInvalid'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany';

/** The causes as the Status message has them: one alone as it is, several in brackets. */
export function joinCauses(causes: readonly Cause[]): string {
  const said = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  return said.length === 1 ? (said[0] ?? '') : `[${said.join(', ')}]`;
}
