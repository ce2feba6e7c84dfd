// Is the Secret there, and are the entries that the object maps?
import type { Finding } from '../finding.ts';
import { isMap } from '../json-patch.ts';
import type { Lookup } from '../lookup.ts';

export interface SecretUse {
  readonly namespace: string;
  readonly name: string;
  /** Path of the member that names the Secret, and of the map of its entries. */
  readonly namePath: string;
  readonly keysPath: string;
  /** Member of the map → data entry. */
  readonly keys: Readonly<Record<string, string>>;
}

export type SecretData = Readonly<Record<string, string>>;

export type ReadSecret =
  | { readonly found: true; readonly data: SecretData }
  | { readonly found: false; readonly findings: ReadonlyArray<Finding> };

/** The data of the Secret, base64 as stored; or why there is none. The words do not tell "missing" from "not yours to read". */
export async function readSecret(use: SecretUse, lookup: Lookup): Promise<ReadSecret> {
  const secret = await lookup.secret(use.namespace, use.name);
  if (secret !== undefined) return { found: true, data: isMap(secret.data) ? (secret.data as SecretData) : {} };
  const message =
    `there is no Secret of this name in namespace ${JSON.stringify(use.namespace)} that you may read: ` +
    'create it before the instance, or correct the name';
  const finding = { rule: 'SecretNotFound', path: use.namePath, value: use.name, message } as const;
  return { found: false, findings: [{ ...finding, effect: 'refuse-unless-dry-run' }] };
}

/** One finding for each mapped entry that the Secret lacks. */
export function missingEntries(use: SecretUse, data: SecretData): Finding[] {
  return Object.entries(use.keys)
    .filter(([, entry]) => !Object.hasOwn(data, entry))
    .map(([member, entry]) => {
      const there = Object.keys(data).sort().slice(0, 10);
      const has = there.length === 0 ? 'it has none' : `it has ${there.join(', ')}`;
      return {
        rule: 'SecretEntryMissing',
        path: `${use.keysPath}${toMember(member)}`,
        value: entry,
        message: `Secret ${JSON.stringify(use.name)} has no such entry (${has}): add it to the Secret, or correct the name`,
        effect: 'refuse-unless-dry-run',
      };
    });
}

export const toMember = (name: string): string =>
  /^[A-Za-z][A-Za-z0-9]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
