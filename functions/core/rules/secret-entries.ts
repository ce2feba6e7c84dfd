// Is a Secret there that an instance names, with the entries that it maps?
import type { Finding } from '../finding.ts';

export interface SecretUse {
  readonly namespace: string;
  readonly name: string;
  /** Path of the member that names the Secret, and of the map of its entries. */
  readonly namePath: string;
  readonly keysPath: string;
  /** Member of the map → data entry. */
  readonly keys: Readonly<Record<string, string | undefined>>;
  /** The model entry whose credentials it holds, by `identifier`. */
  readonly entry?: string | undefined;
}

/** Base64, as stored. */
export type SecretData = Readonly<Record<string, string>>;

/**
 * What was found out about a Secret: nothing where it is missing, or not the asker's to read. `listed`: whoever is told
 * may see the names of its entries; people who read a condition may not.
 */
export type ReadSecret = { readonly data: SecretData; readonly listed: boolean } | undefined;

/** The words do not tell "missing" from "not yours to read". */
export const secretNotFound = ({ namespace, name, namePath, entry }: SecretUse): Finding => ({
  rule: 'SecretNotFound',
  path: namePath,
  value: name,
  message: `there is no Secret of this name in namespace ${JSON.stringify(namespace)} that can be read${forEntry(entry)}; create it there, or correct the name`,
  effect: 'refuse-unless-dry-run',
});

/** One finding for each mapped entry that the Secret lacks. */
export function missingEntries(use: SecretUse, { data, listed }: NonNullable<ReadSecret>): Finding[] {
  const isThere = (entry: string | undefined) => entry === undefined || Object.hasOwn(data, entry);
  if (Object.values(use.keys).every(isThere)) return [];
  const there = Object.keys(data).sort().slice(0, 10);
  const has = listed ? ` (it has ${there.length === 0 ? 'none' : there.join(', ')})` : '';
  return Object.entries(use.keys).flatMap(([member, entry]): Finding[] => {
    if (entry === undefined || isThere(entry)) return [];
    const message = `Secret ${JSON.stringify(use.name)} has no such entry${forEntry(use.entry)}; add it to the Secret, or correct the name${has}`;
    const path = `${use.keysPath}${toMember(member)}`;
    return [{ rule: 'SecretEntryMissing', path, value: entry, message, effect: 'refuse-unless-dry-run' }];
  });
}

const forEntry = (entry: string | undefined): string =>
  entry === undefined ? '' : `, for model ${JSON.stringify(entry)}`;

export const toMember = (name: string): string =>
  /^[A-Za-z][A-Za-z0-9]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
