// Rules about the Secrets of an instance: each exists and has every key that the instance maps, and the values give an
// address.
import type { GatewayInstanceSpec as Spec } from '#crds/kinds/gateway-instance.ts';
import type { ModelEntry } from '#crds/kinds/model-entry.ts';
import type { Result } from '../failure/result.ts';
import { fromBase64 } from '../json/base64.ts';
import { ownMember } from '../json/json.ts';
import { cutText } from '../json/text.ts';
import { modelOf } from '../models/entry-model.ts';
import { hasTooManyKeys, type KubeObject, MAX_KEYS } from '../ports/cluster.ts';
import { type ConnectionProblem, neededStoreFiles, toDatabaseConnection, toStoreConnection } from './connections.ts';
import { type CredentialProblem, toModelEntryAddress } from './credentials.ts';
import type { Finding } from './finding.ts';

/** Base64, as stored. */
export type SecretData = Readonly<Record<string, string>>;

/**
 * A Secret, as far as the reader of a finding may know it. Undefined: it is missing, or the reader may not read it.
 * `tooManyKeys`: it was not read. `names`: some of its keys, if the reader may see those. Readers of a condition may
 * not.
 */
export type ReadSecret =
  | {
      readonly data: SecretData;
      readonly names?: ReadonlyArray<string>;
      /** The text of a key, decoded once. */
      readonly text: (key: string) => string | undefined;
    }
  | 'tooManyKeys'
  | undefined;
type ReadableSecret = Exclude<ReadSecret, 'tooManyKeys' | undefined>;

const MAX_NAMES = 10;
/** The maximum characters of a name in a list of names. */
const MAX_NAME = 64;

/** The data of a Secret as stored. The API server guarantees its shape. */
export const dataOf = (secret: KubeObject): SecretData => (secret.data ?? {}) as SecretData;

/**
 * A Secret for the rules. Slow work is done once for each Secret: it may have 1,000 keys or a value of 1 MB, and 512
 * model entries may name it. `isListed`: the reader may see the names of its keys.
 */
export function toReadSecret(secret: KubeObject | undefined, isListed: boolean): ReadSecret {
  if (secret === undefined) return undefined;
  if (hasTooManyKeys(secret)) return 'tooManyKeys';
  const data = dataOf(secret);
  const texts = new Map<string, string>();
  const text = (key: string) => {
    if (!texts.has(key) && Object.hasOwn(data, key)) texts.set(key, fromBase64(data[key] ?? ''));
    return texts.get(key);
  };
  return { data, text, ...(isListed ? { names: namesOf(data) } : {}) };
}

const namesOf = (data: SecretData): ReadonlyArray<string> =>
  Object.keys(data)
    .slice(0, MAX_NAMES)
    .map((name) => cutText(name, MAX_NAME))
    .sort();

export type SecretFinding = Finding<'SecretNotFound' | ConnectionProblem['reason']>;

/** Findings about one Secret, by the field that names it. They do not keep its values, which may have a megabyte. */
export interface SecretFindings {
  readonly database: ReadonlyArray<SecretFinding>;
  readonly store: ReadonlyArray<SecretFinding>;
  /** By the index of the model entry. */
  readonly entries: ReadonlyMap<number, ReadonlyArray<SecretFinding>>;
}

/** A reference of an instance to a Secret: `database`, `store`, or the index of a model entry. */
export type SecretUse = 'database' | 'store' | number;

/**
 * The uses of Secrets, by the Secret's name, that `other` does not have in the same way: with another Secret, other
 * keys, or another provider. All others have the same findings in both.
 */
export function newSecretUses(spec: Spec, other: Spec | undefined) {
  const known = new Set(other && referencesOf(other).map(({ content }) => content));
  // Contents are not kept while Secrets are read: together they may be as large as the review.
  const uses = referencesOf(spec).flatMap(({ content, ...use }) => (known.has(content) ? [] : use));
  return Map.groupBy(uses, ({ nameRef }) => nameRef);
}

/** `content`: what the findings in a Secret depend on. */
function referencesOf({ databaseSecretRef: database, redisSecretRef: store, models }: Spec) {
  const toReference = (use: SecretUse, nameRef: string, ...content: ReadonlyArray<unknown>) => ({
    use,
    nameRef,
    content: JSON.stringify(content),
  });
  return [
    toReference('database', database.nameRef, 'database', database),
    toReference('store', store.nameRef, 'store', store),
    ...models.flatMap(({ identifier, modelCredentials: ref, gatewayParams }, index) =>
      ref === undefined
        ? []
        : toReference(index, ref.nameRef, identifier, ref, modelOf(gatewayParams), gatewayParams.apiBase),
    ),
  ];
}

/** Checks the Secrets of an instance by name. The time of a check depends only on the fields that name its Secret. */
export function createSecretCheck(
  { databaseSecretRef: database, redisSecretRef: store, models }: Spec,
  namespace: string,
) {
  const entries = models.flatMap(({ modelCredentials: ref, ...entry }, index) =>
    ref === undefined ? [] : [{ ...entry, index, ref }],
  );
  const bySecret = Map.groupBy(entries, ({ ref }) => ref.nameRef);
  return (name: string, secret: ReadSecret): SecretFindings => ({
    database: database.nameRef === name ? checkDatabaseSecret(database, namespace, secret) : [],
    store: store.nameRef === name ? checkStoreSecret(store, namespace, secret) : [],
    entries: new Map(
      (bySecret.get(name) ?? []).map(({ ref, ...entry }) => [
        entry.index,
        checkCredentials(ref, entry, namespace, secret),
      ]),
    ),
  });
}

/** The Secret exists and has every key that the instance maps, and the values give an address. */
const checkDatabaseSecret = (ref: Spec['databaseSecretRef'], namespace: string, secret: ReadSecret): SecretFinding[] =>
  checkAddress(toUse(ref, namespace, 'spec.databaseSecretRef'), secret, (data) => toDatabaseConnection(ref, data));

/** The same for the counter store. Only the keys that it needs are required. */
function checkStoreSecret(ref: Spec['redisSecretRef'], namespace: string, secret: ReadSecret): SecretFinding[] {
  const files = isUnread(secret) ? [] : neededStoreFiles(ref, secret.data);
  const keys = Object.fromEntries(files.map((file) => [`${file}Secret`, ref.keys[`${file}Secret`]]));
  const use = toUse({ ...ref, keys }, namespace, 'spec.redisSecretRef');
  return checkAddress(use, secret, (data) => toStoreConnection(ref, data));
}

function checkAddress(
  use: Use,
  secret: ReadSecret,
  parse: (data: SecretData) => Result<unknown, ConnectionProblem>,
): SecretFinding[] {
  if (isUnread(secret)) return [unreadSecret(use, secret)];
  const connection = parse(secret.data);
  if (connection.ok) return [];
  const { failure } = connection;
  return failure.reason === 'SecretKeyMissing' ? missingKeys(use, secret) : [invalidValue(use, failure)];
}

/**
 * The Secret of one model entry exists and has every key that the model entry maps, and the gateway can call the
 * provider with the values.
 */
export function checkCredentials(
  ref: SecretRef,
  { index, identifier, gatewayParams }: CredentialedEntry,
  namespace: string,
  secret: ReadSecret,
): SecretFinding[] {
  const use = { ...toUse(ref, namespace, `spec.models[${index}].modelCredentials`), entry: identifier };
  if (isUnread(secret)) return [unreadSecret(use, secret)];
  const missing = missingKeys(use, secret);
  if (missing.length > 0) return missing;
  const values = Object.entries(ref.keys).flatMap(([name, key = '']) => {
    const text = secret.text(key);
    return text === undefined ? [] : [[name, text] as const];
  });
  const access = toModelEntryAddress({ ...modelOf(gatewayParams), apiBase: gatewayParams.apiBase }, values);
  return access.ok ? [] : invalidCredential(use, access.failure);
}

interface CredentialedEntry {
  readonly index: number;
  readonly identifier: string;
  readonly gatewayParams: ModelEntry['gatewayParams'];
}

/** A model entry without an address has a finding of its own (`noAddress`). */
function invalidCredential(
  { nameRef, keys, at, entry }: Use,
  { credential, problem }: CredentialProblem,
): SecretFinding[] {
  const key = credential === undefined ? undefined : ownMember(keys, credential);
  if (credential === undefined || (key === undefined && credential === 'apiBase')) return [];
  const what = key === undefined ? '' : `this key of Secret ${JSON.stringify(nameRef)} `;
  const message = `${what}${problem}${forEntry(entry)}; the gateway skips the model entry until you correct the Secret`;
  const path = `${at}.keys${toMember(credential)}`;
  return [{ rule: 'SecretKeyInvalid', path, value: key, message, effect: 'refuse-unless-dry-run' }];
}

interface SecretRef {
  readonly nameRef: string;
  /** Member of the spec → Secret key. */
  readonly keys: Readonly<Record<string, string | undefined>>;
}

interface Use extends SecretRef {
  readonly namespace: string;
  /** Path of the reference. */
  readonly at: string;
  /** The model entry whose credentials the Secret holds, by `identifier`. */
  readonly entry?: string;
}

const toUse = ({ nameRef, keys }: SecretRef, namespace: string, at: string): Use => ({ nameRef, keys, namespace, at });

const isUnread = (secret: ReadSecret): secret is Exclude<ReadSecret, ReadableSecret> => typeof secret !== 'object';

const unreadSecret = (use: Use, secret: Exclude<ReadSecret, ReadableSecret>): SecretFinding =>
  secret === undefined ? secretNotFound(use) : tooManyKeys(use);

/** Parsing very many keys takes time that all instances share. */
const tooManyKeys = ({ nameRef, at, entry }: Use): SecretFinding => ({
  rule: 'SecretKeyInvalid',
  path: `${at}.nameRef`,
  value: nameRef,
  message: `the Secret has more than ${MAX_KEYS} keys, so it is not read${forEntry(entry)}; keep only the keys that are needed, or name another Secret`,
  effect: 'refuse-unless-dry-run',
});

/** The Secret is missing, or the reader may not read it: the message does not show which. */
const secretNotFound = ({ namespace, nameRef, at, entry }: Use): SecretFinding => ({
  rule: 'SecretNotFound',
  type: 'Not found',
  path: `${at}.nameRef`,
  value: nameRef,
  message: `no readable Secret of this name is in namespace ${JSON.stringify(namespace)}${forEntry(entry)}; create it there, or correct the name`,
  effect: 'refuse-unless-dry-run',
});

/** One finding for each mapped key that the Secret lacks. */
function missingKeys({ nameRef, keys, at, entry }: Use, { data, names }: ReadableSecret): SecretFinding[] {
  const has = names === undefined ? '' : ` (it has ${names.length === 0 ? 'none' : names.join(', ')})`;
  return Object.entries(keys).flatMap(([member, key]): SecretFinding[] => {
    if (key === undefined || Object.hasOwn(data, key)) return [];
    const message = `Secret ${JSON.stringify(nameRef)} has no key of this name${forEntry(entry)}; add it to the Secret, or correct the name${has}`;
    const path = `${at}.keys${toMember(member)}`;
    return [
      { rule: 'SecretKeyMissing', type: 'Not found', path, value: key, message, effect: 'refuse-unless-dry-run' },
    ];
  });
}

/** Only a warning: people can correct a Secret at any time, without applying the instance again. */
function invalidValue({ nameRef, keys, at }: Use, { reason, key, problem }: ConnectionProblem): SecretFinding {
  const [member] = Object.entries(keys).find(([, mapped]) => mapped === key) ?? [''];
  const path = `${at}.keys${toMember(member)}`;
  const message = `the value of this key of Secret ${JSON.stringify(nameRef)} ${problem}`;
  return { rule: reason, path, value: key, message, effect: 'warn' };
}

const forEntry = (entry: string | undefined): string =>
  entry === undefined ? '' : `, for model entry ${JSON.stringify(entry)}`;

export const toMember = (name: string): string =>
  /^[A-Za-z][A-Za-z0-9]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
