// Causes of an Invalid error, in the real server's words.
import { goJson, quote } from './go-format.ts';

/** One entry of `Status.details.causes`: the field, the reason, and the words after `field: ` in the Status message. */
export type Cause = {
  readonly field: string;
  /** `FieldValueInvalid`, `FieldValueRequired`, … */
  readonly reason: string;
  readonly message: string;
};

/** The causes as the Status message has them: one alone as it is, several in brackets. */
export function joinCauses(causes: readonly Cause[]): string {
  const said = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  return said.length === 1 ? (said[0] ?? '') : `[${said.join(', ')}]`;
}

/** A bad value as `field.Error` prints it. */
function badValue(value: unknown): string {
  return typeof value === 'string' ? quote(value) : goJson(value ?? null);
}

export function invalid(field: string, value: unknown, detail: string): Cause {
  return {
    field,
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${badValue(value)}${detail === '' ? '' : `: ${detail}`}`,
  };
}

export function required(field: string, detail = ''): Cause {
  return { field, reason: 'FieldValueRequired', message: `Required value${detail === '' ? '' : `: ${detail}`}` };
}

export function duplicate(field: string, value: unknown): Cause {
  return { field, reason: 'FieldValueDuplicate', message: `Duplicate value: ${badValue(value)}` };
}

export function forbidden(field: string, detail: string): Cause {
  return { field, reason: 'FieldValueForbidden', message: `Forbidden: ${detail}` };
}

export function notSupported(field: string, value: unknown, supported: readonly unknown[]): Cause {
  const values = supported.map((one) => quote(typeof one === 'string' ? one : JSON.stringify(one)));
  return {
    field,
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${badValue(value)}: supported values: ${values.join(', ')}`,
  };
}

export function tooLong(field: string, max: number): Cause {
  return { field, reason: 'FieldValueTooLong', message: `Too long: may not be more than ${max} bytes` };
}

export function tooMany(field: string, actual: number, max: number): Cause {
  return {
    field,
    reason: 'FieldValueTooMany',
    message: `Too many: ${actual}: must have at most ${max} ${max === 1 ? 'item' : 'items'}`,
  };
}

/** A value of the wrong type (`found` is its own), or a text that does not fit its format (`found` is the text). */
export function wrongType(field: string, wanted: string, found: string): Cause {
  return {
    field,
    reason: 'FieldValueTypeInvalid',
    message: `Invalid value: ${quote(found)}: ${field} in body must be of type ${wanted}: ${quote(found)}`,
  };
}

/** A value that no alternative of its schema takes; the API server names no field here but in the words. */
export function noAlternative(field: string, words: string): Cause {
  return { field: '<nil>', reason: 'FieldValueInvalid', message: `Invalid value: "": ${quote(field)} ${words}` };
}
