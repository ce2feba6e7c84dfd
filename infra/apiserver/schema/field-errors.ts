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
  const messages = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  return messages.length === 1 ? (messages[0] ?? '') : `[${messages.join(', ')}]`;
}

/** A bad value as `field.Error` prints it. */
function badValue(value: unknown): string {
  return typeof value === 'string' ? quote(value) : goJson(value ?? null);
}

function cause(field: string, reason: string, message: string): Cause {
  return { field, reason, message };
}

export function invalid(field: string, value: unknown, detail: string): Cause {
  const why = detail === '' ? '' : `: ${detail}`;
  return cause(field, 'FieldValueInvalid', `Invalid value: ${badValue(value)}${why}`);
}

/** The cause that keeps a part of an object from being compiled; none where it compiles. */
export function compileCauses(compile: () => unknown, path: string, value: unknown): Cause[] {
  try {
    compile();
    return [];
  } catch (error) {
    const { field, message } = error as Error & { field?: string }; // a SchemaError names its place
    return [invalid(field === undefined ? path : `${path}.${field}`, value, message)];
  }
}

export function required(field: string, detail = ''): Cause {
  return cause(field, 'FieldValueRequired', `Required value${detail === '' ? '' : `: ${detail}`}`);
}

export function duplicate(field: string, value: unknown): Cause {
  return cause(field, 'FieldValueDuplicate', `Duplicate value: ${badValue(value)}`);
}

export function forbidden(field: string, detail: string): Cause {
  return cause(field, 'FieldValueForbidden', `Forbidden: ${detail}`);
}

export function notSupported(field: string, value: unknown, supported: readonly unknown[]): Cause {
  const values = supported.map((one) => quote(typeof one === 'string' ? one : JSON.stringify(one)));
  const message = `Unsupported value: ${badValue(value)}: supported values: ${values.join(', ')}`;
  return cause(field, 'FieldValueNotSupported', message);
}

export function tooLong(field: string, max: number): Cause {
  return cause(field, 'FieldValueTooLong', `Too long: may not be more than ${max} bytes`);
}

export function tooMany(field: string, actual: number, max: number): Cause {
  const items = max === 1 ? 'item' : 'items';
  return cause(field, 'FieldValueTooMany', `Too many: ${actual}: must have at most ${max} ${items}`);
}

/** A value of the wrong type (`found` is its own), or a text that does not fit its format (`found` is the text). */
export function wrongType(field: string, wanted: string, found: string): Cause {
  const message = `Invalid value: ${quote(found)}: ${field} in body must be of type ${wanted}: ${quote(found)}`;
  return cause(field, 'FieldValueTypeInvalid', message);
}

/** A value that no alternative of its schema takes; the API server names no field here but in the words. */
export function noAlternative(field: string, words: string): Cause {
  return cause('<nil>', 'FieldValueInvalid', `Invalid value: "": ${quote(field)} ${words}`);
}
