// How is it told that fields of an apply belong to somebody else?
import { difference, type FieldSet, pathsOf, pathText } from './field-set.ts';
import type { Manager, Managers } from './managed-fields.ts';

/** One cause of a 409: the field, its owner, and the words of the cause (`conflict with "kubectl-edit" using v1`). */
export type Conflict = { readonly field: string; readonly manager: string; readonly message: string };

/** One per field and owner, but for the tolerated ones. */
export function toConflicts(
  disputed: ReadonlyMap<string, FieldSet>,
  managers: Managers,
  tolerated: FieldSet,
): Conflict[] {
  const conflicts = [...disputed].flatMap(([id, fields]) => {
    const owner = managers.get(id);
    const who = owner ? ownerText(owner) : id;
    return pathsOf(difference(fields, tolerated)).map((path) => ({
      field: pathText(path),
      manager: owner?.manager ?? id,
      message: `conflict with ${who}`,
    }));
  });
  return conflicts.sort((a, b) => (a.message < b.message ? -1 : a.message > b.message ? 1 : 0));
}

function ownerText({ manager, operation, apiVersion, subresource }: Manager): string {
  const name = subresource
    ? `${JSON.stringify(manager)} with subresource ${JSON.stringify(subresource)}`
    : JSON.stringify(manager);
  return operation === 'Update' ? `${name} using ${apiVersion}` : name;
}

/** The message of the 409's Status. */
export function conflictMessage(conflicts: readonly Conflict[]): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first) return `Apply failed with 1 conflict: ${first.message}: ${first.field}`;
  const lines = [...new Set(conflicts.map(({ message }) => message))].flatMap((message) => [
    `${message.replace('conflict', 'conflicts')}:`,
    ...conflicts.filter((one) => one.message === message).map(({ field }) => `- ${field}`),
  ]);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
}
