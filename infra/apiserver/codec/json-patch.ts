// What does an RFC 6902 patch make of a document?
import { copyJson, isObject, type JsonObject, sameJson, setMember } from '../schema/json.ts';

/** A patch that cannot be applied: the message is for the client (400 for its form, 422 where the document does not fit). */
export class PatchError extends Error {
  readonly code: 400 | 422;
  constructor(code: 400 | 422, message: string) {
    super(message);
    this.code = code;
  }
}

type Operation = { readonly op: string; readonly path: string; readonly from?: string; readonly value?: unknown };

/** Applies all operations or throws `PatchError`; the argument is not changed. */
export function jsonPatch(document: JsonObject, patch: unknown): JsonObject {
  if (!Array.isArray(patch)) throw new PatchError(400, 'a JSON patch is a list of operations');
  let result: unknown = copyJson(document);
  for (const one of patch) result = apply(result, operation(one));
  if (!isObject(result)) throw new PatchError(422, 'the patch does not leave an object');
  return result;
}

function operation(value: unknown): Operation {
  if (!isObject(value) || typeof value.op !== 'string' || typeof value.path !== 'string') {
    throw new PatchError(400, 'an operation of a JSON patch needs "op" and "path"');
  }
  if ((value.op === 'move' || value.op === 'copy') && typeof value.from !== 'string') {
    throw new PatchError(400, `the operation "${value.op}" needs "from"`);
  }
  if (['add', 'replace', 'test'].includes(value.op) && !Object.hasOwn(value, 'value')) {
    throw new PatchError(400, `the operation "${value.op}" needs "value"`);
  }
  return value as Operation; // checked above, member by member
}

function apply(document: unknown, { op, path, from, value }: Operation): unknown {
  const at = pointer(path);
  if (op === 'add') return add(document, at, copyJson(value), path);
  if (op === 'remove') return remove(document, at, path).document;
  if (op === 'replace') {
    if (at.length === 0) return copyJson(value);
    return add(remove(document, at, path).document, at, copyJson(value), path);
  }
  if (op === 'test') {
    if (sameJson(read(document, at, path), value)) return document;
    throw new PatchError(422, `testing value ${path} failed`);
  }
  if (op === 'copy') return add(document, at, copyJson(read(document, pointer(from ?? ''), from ?? '')), path);
  if (op === 'move') {
    if (path.startsWith(`${from}/`)) throw new PatchError(422, `cannot move ${from} into itself at ${path}`);
    const taken = remove(document, pointer(from ?? ''), from ?? '');
    return add(taken.document, at, taken.value, path);
  }
  throw new PatchError(400, `unknown operation "${op}" in a JSON patch`);
}

/** RFC 6901: the reference tokens of a pointer. */
function pointer(text: string): string[] {
  if (text === '') return [];
  if (!text.startsWith('/')) throw new PatchError(400, `"${text}" is not a JSON pointer`);
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function read(document: unknown, at: readonly string[], path: string): unknown {
  return at.reduce((value, token) => {
    if (Array.isArray(value)) return value[index(token, value.length - 1, path)];
    if (isObject(value) && Object.hasOwn(value, token)) return value[token];
    throw missing(path);
  }, document);
}

function add(document: unknown, at: readonly string[], value: unknown, path: string): unknown {
  const last = at.at(-1);
  if (last === undefined) return value;
  const parent = read(document, at.slice(0, -1), path);
  if (Array.isArray(parent)) parent.splice(last === '-' ? parent.length : index(last, parent.length, path), 0, value);
  else if (isObject(parent)) setMember(parent, last, value);
  else throw missing(path);
  return document;
}

function remove(document: unknown, at: readonly string[], path: string): { document: unknown; value: unknown } {
  const last = at.at(-1);
  if (last === undefined) throw new PatchError(422, 'the whole document cannot be removed');
  const parent = read(document, at.slice(0, -1), path);
  if (Array.isArray(parent)) return { document, value: parent.splice(index(last, parent.length - 1, path), 1)[0] };
  if (!isObject(parent) || !Object.hasOwn(parent, last)) throw missing(path);
  const value = parent[last];
  delete parent[last];
  return { document, value };
}

function index(token: string, max: number, path: string): number {
  if (!/^(0|[1-9]\d*)$/.test(token) || Number(token) > max) throw missing(path);
  return Number(token);
}

function missing(path: string): PatchError {
  return new PatchError(422, `the server rejected our request due to an error in our request: no such place: ${path}`);
}
