// JSON patches (RFC 6902) and merge patches (RFC 7386).
import { applyPatch } from 'rfc6902';
import { isObject, type JsonObject, setMember } from '../schema/json.ts';

/**
 * A patch that cannot be applied: the message is for the client (400 for its form, 422 where the document does not
 * fit).
 */
export class PatchError extends Error {
  readonly code: 400 | 422;
  constructor(code: 400 | 422, message: string) {
    super(message);
    this.code = code;
  }
}

type Operation = Parameters<typeof applyPatch>[1][number];

/** Applies all operations or throws `PatchError`; the argument is not changed. */
export function jsonPatch(document: JsonObject, patch: unknown): JsonObject {
  if (!Array.isArray(patch)) throw new PatchError(400, 'a JSON patch is a list of operations');
  const whole: JsonObject = { '': structuredClone(document) };
  for (const error of applyPatch(whole, patch.map(toOperation))) {
    if (error === null) continue;
    const why = `the server rejected our request due to an error in our request: ${error.message}`;
    throw new PatchError(error.name === 'InvalidOperationError' ? 400 : 422, why);
  }
  const result = whole[''];
  if (!isObject(result)) throw new PatchError(422, 'the patch does not leave an object');
  return result;
}

/** The operation on a document that is the member `""` of another one, so that even the whole can be replaced. */
function toOperation(value: unknown): Operation {
  const { op, path, from } = isObject(value) ? value : {};
  const isPointer = (text: unknown) => typeof text === 'string' && (text === '' || text.startsWith('/'));
  if (!isObject(value) || !isPointer(path) || ((op === 'move' || op === 'copy') && !isPointer(from))) {
    throw new PatchError(400, `${JSON.stringify(value)} is no operation of a JSON patch`);
  }
  // The library walks past such names and would write elsewhere.
  const inherited = /(^|\/)(__proto__|constructor|prototype)(\/|$)/.exec(`${path}/${from ?? ''}`);
  if (inherited) throw new PatchError(422, `a JSON patch cannot reach a member called ${inherited[2]}`);
  return { ...value, path: `/${path}`, ...(from !== undefined && { from: `/${from}` }) } as Operation; // rfc6902 checks the rest
}

/** A copy of the target with the patch merged in: null removes, objects merge, everything else replaces. */
export function mergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  const merged: JsonObject = Object.fromEntries(Object.entries(target));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else if (isObject(value)) {
      const before = Object.hasOwn(merged, key) ? merged[key] : undefined;
      setMember(merged, key, mergePatch(isObject(before) ? before : {}, value));
    } else setMember(merged, key, structuredClone(value));
  }
  return merged;
}
