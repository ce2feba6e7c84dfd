// The Secret of a VirtualKey: its desired shape, whether an existing Secret belongs to the VirtualKey, and the
// differences.
import * as z from 'zod';
import { toUtf8 } from '#core/json/bytes.ts';
import { ownMember } from '#core/json/json.ts';
import { keySecretName } from '#core/keys/object-names.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import { isHarmless } from '#core/rules/secret-template.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { OWNED_LABEL, OWNED_LABEL_VALUE, OWNED_LABELS, RETAINED_LABEL } from '#crds/names/group.ts';
import type { InstanceAddress, SecretMarks, SecretShape } from '../action.ts';
import { type KeyView, type PresentSecret, presentSecret } from '../world.ts';
import { isOwnBlocked } from './own-blockers.ts';
import { fingerprintOf } from './secret-fingerprint.ts';

/** Annotation of the Secret: the uid of the VirtualKey that the Secret was created for. */
export const KEY_UID_ANNOTATION = 'auth.gateway-operator.dev/key-uid';
/**
 * Annotation of the Secret: the uids of the VirtualKeys that the Secret, or the one that it was copied from, was of
 * before; the newest first. After a restore of the database, the claim is held by one of them again.
 */
export const PREVIOUS_UIDS_ANNOTATION = 'auth.gateway-operator.dev/previous-key-uids';
const MAX_PREVIOUS_UIDS = 8;
/** Annotation of the Secret of a retained key: the value is blocked until a VirtualKey adopts it. */
export const BLOCKED_ANNOTATION = 'auth.gateway-operator.dev/blocked';
/**
 * Annotation of the Secret: the names of the labels and annotations that the template added, so that they can be
 * removed with the template.
 */
const TEMPLATE_ANNOTATION = 'auth.gateway-operator.dev/from-template';

/** The placeholders in a template's texts: for the key value, and for the addresses of the instance. */
const KEY_PLACEHOLDER = `\${key}`;
const PLACEHOLDER = /\$\{(key|baseURL|internalURL)\}/g;
const ADDRESS_PLACEHOLDER = /\$\{(baseURL|internalURL)\}/;

/** The name that the Secret of a VirtualKey should have. */
export const secretNameOf = ({ metadata, spec }: VirtualKey, hash: Hash): string =>
  keySecretName(metadata.name, spec.secretTemplate?.name, hash);

/** The Secret that a shape is for. */
export interface SecretTarget {
  readonly name: string;
  /** A Secret key that needs an address is left out until the addresses are known. */
  readonly address: InstanceAddress;
  readonly prefixes: ReadonlyArray<string>;
  /** The existing Secret of this name. */
  readonly present: PresentSecret | undefined;
  /** The existing Secret of the previous name. */
  readonly previous: PresentSecret | undefined;
}

/**
 * The Secret has no owner reference: after a restore the VirtualKey has another uid, and the garbage collector would
 * delete the Secret with its old owner. The finalizer deletes the Secret.
 */
export function shapeOf(key: VirtualKey, target: SecretTarget): SecretShape {
  const { name, address, present, previous } = target;
  const template = key.spec.secretTemplate;
  const labels = allowedTexts('labels', template, target);
  const annotations = allowedTexts('annotations', template, target);
  const data = Object.entries(template?.data ?? {}).filter(
    ([, text]) => address.url !== undefined || !ADDRESS_PLACEHOLDER.test(text),
  );
  return {
    name,
    labels: { ...labels, ...OWNED_LABELS },
    annotations: { ...annotations, ...uidsOf(key, present ?? previous), ...recordOf(labels, annotations) },
    data: { ...Object.fromEntries(data), key: KEY_PLACEHOLDER },
    address,
  };
}

/** Labels and annotations of the Secret of a retained key value: the next runs have no VirtualKey to read them from. */
export const retainedMarks = (key: VirtualKey, secret: PresentSecret): SecretMarks => ({
  labels: { ...OWNED_LABELS, [RETAINED_LABEL]: 'true' },
  annotations: { ...uidsOf(key, secret), [BLOCKED_ANNOTATION]: isOwnBlocked(key) ? 'true' : null },
});

/** The uid of the VirtualKey, and those of the VirtualKeys that the Secret was of before. */
function uidsOf({ metadata: { uid } }: VirtualKey, secret: PresentSecret | undefined): Texts {
  const previous = secret === undefined ? [] : holdersOf(secret).filter((one) => one !== uid);
  const kept = previous.slice(0, MAX_PREVIOUS_UIDS).join(',');
  return { [KEY_UID_ANNOTATION]: uid, ...(kept === '' ? {} : { [PREVIOUS_UIDS_ANNOTATION]: kept }) };
}

/** Uids of the VirtualKeys that the Secret was of, the newest first. People may have edited the annotations. */
export function holdersOf({ annotations }: PresentSecret): ReadonlyArray<string> {
  const previous = annotations[PREVIOUS_UIDS_ANNOTATION]?.split(',', MAX_PREVIOUS_UIDS) ?? [];
  const uids = [annotations[KEY_UID_ANNOTATION] ?? '', ...previous];
  return [...new Set(uids)].filter((uid) => UID.test(uid));
}

const UID = /^[-0-9A-Za-z]{1,64}$/;

type Texts = Readonly<Record<string, string>>;

/**
 * The template's names that no rule forbids, and those that a template added before the rule existed: programs that
 * read them continue working.
 */
function allowedTexts(
  part: 'labels' | 'annotations',
  template: VirtualKey['spec']['secretTemplate'],
  { prefixes, present: secret }: SecretTarget,
): Texts {
  const earlier = parseRecord(secret?.annotations[TEMPLATE_ANNOTATION])[part];
  const isKept = (name: string, text: string) =>
    earlier.includes(name) && ownMember(secret?.[part] ?? {}, name) === text;
  const texts = Object.entries(template?.[part] ?? {});
  return Object.fromEntries(texts.filter(([name, text]) => isHarmless(name, prefixes) || isKept(name, text)));
}

function recordOf(labels: Texts, annotations: Texts): Texts {
  const record = { labels: Object.keys(labels).sort(), annotations: Object.keys(annotations).sort() };
  if (record.labels.length === 0 && record.annotations.length === 0) return {};
  return { [TEMPLATE_ANNOTATION]: JSON.stringify(record) };
}

const TemplateRecord = z.object({ labels: z.array(z.string()), annotations: z.array(z.string()) });

/**
 * Labels and annotations to write: those of the shape, and `null` for those that an earlier template or a retention
 * added. Those of others stay.
 */
export function metadataOf(secret: PresentSecret, shape: Pick<SecretShape, 'labels' | 'annotations'>): SecretMarks {
  const record = parseRecord(secret.annotations[TEMPLATE_ANNOTATION]);
  const removed = (names: ReadonlyArray<string>, have: Readonly<Record<string, string>>) =>
    Object.fromEntries(names.filter((name) => Object.hasOwn(have, name)).map((name) => [name, null]));
  return {
    labels: { ...removed([...record.labels, RETAINED_LABEL], secret.labels), ...shape.labels },
    annotations: {
      ...removed([...record.annotations, TEMPLATE_ANNOTATION, BLOCKED_ANNOTATION], secret.annotations),
      ...shape.annotations,
    },
  };
}

/**
 * The labels and annotations of a Secret that are compared: the operator's, the template's, and those of an earlier
 * template.
 */
export function comparedParts(
  { labels = {}, annotations = {} }: KubeObject['metadata'],
  template: VirtualKey['spec']['secretTemplate'],
): Pick<PresentSecret, 'labels' | 'annotations'> {
  const record = parseRecord(annotations[TEMPLATE_ANNOTATION]);
  const pick = (part: 'labels' | 'annotations', texts: Texts, own: ReadonlyArray<string>) => {
    const desired: Texts = template?.[part] ?? {};
    const ofTemplate = [...Object.keys(desired), ...record[part]].map((name) => {
      const text = ownMember(desired, name);
      return [name, text !== undefined && text === texts[name] ? text : ANOTHER_TEXT] as const;
    });
    const ofOperator = own.map((name) => {
      const text = texts[name] ?? '';
      return [
        name,
        text.length > (name === TEMPLATE_ANNOTATION ? MAX_RECORD : MAX_TEXT) ? ANOTHER_TEXT : text,
      ] as const;
    });
    return Object.fromEntries([...ofTemplate, ...ofOperator].filter(([name]) => Object.hasOwn(texts, name)));
  };
  return {
    labels: pick('labels', labels, [...Object.keys(OWNED_LABELS), RETAINED_LABEL]),
    annotations: pick('annotations', annotations, [
      KEY_UID_ANNOTATION,
      PREVIOUS_UIDS_ANNOTATION,
      TEMPLATE_ANNOTATION,
      BLOCKED_ANNOTATION,
    ]),
  };
}

/**
 * Stands for a text that is wrong anyway. A run keeps what it has read of thousands of Secrets, and each may have 256 KiB
 * of annotations.
 */
const ANOTHER_TEXT = '';
/** The maximum characters of an annotation of the operator, and of the one that names parts of the template. */
const MAX_TEXT = 1024;
const MAX_RECORD = 16_384;

/** People may have edited the annotation: a damaged one counts as empty. */
function parseRecord(text = 'null'): z.output<typeof TemplateRecord> {
  const none = { labels: [], annotations: [] };
  try {
    return TemplateRecord.catch(none).parse(JSON.parse(text));
  } catch {
    return none;
  }
}

/** The data that a shape makes from a key value. */
export function dataOf({ data, address }: SecretShape, value: string): Readonly<Record<string, string>> {
  const { url = '', internalURL = '' } = address;
  const values: Readonly<Record<string, string>> = { key: value, baseURL: url, internalURL };
  const texts = Object.entries(data).map(([name, text]) => [
    name,
    text.replace(PLACEHOLDER, (_, placeholder: string) => values[placeholder] ?? ''),
  ]);
  return Object.fromEntries(texts);
}

/**
 * Whether the Secret belongs to the VirtualKey: it was created for this VirtualKey (annotation), or it has our label
 * and holds one of the values in `proven`, the hashes of working values in the claim. Other Secrets are never written
 * and never deleted.
 */
export function isOurs(
  secret: PresentSecret,
  { metadata: { uid } }: VirtualKey,
  proven: ReadonlyArray<string>,
): boolean {
  const { annotations, hash } = secret;
  if (annotations[KEY_UID_ANNOTATION] === uid) return true;
  return isLabelled(secret) && hash !== undefined && proven.includes(hash);
}

/** Whether the Secret may belong to some VirtualKey. The data of other Secrets, of up to 1 MB, is not compared. */
export const mayBeOurs = ({ labels = {}, annotations = {} }: KubeObject['metadata']): boolean =>
  labels[OWNED_LABEL] === OWNED_LABEL_VALUE || Object.hasOwn(annotations, KEY_UID_ANNOTATION);

/** Only a Secret with our label may be deleted (DESIGN 6, law 4). */
export const isLabelled = ({ labels }: PresentSecret): boolean => labels[OWNED_LABEL] === OWNED_LABEL_VALUE;

/** The Secret with the previous name, if a Secret with the new name has replaced it. */
export function replacedSecretOf(view: KeyView, secret: PresentSecret): PresentSecret | undefined {
  const previous = presentSecret(view.previous);
  if (previous === undefined || previous.uid === secret.uid) return undefined;
  return isLabelled(previous) && isOurs(previous, view.object, []) ? previous : undefined;
}

/**
 * The differences between the Secret and its shape, in words; empty if there are none. Labels and annotations of others
 * are not compared.
 */
export function driftOf(secret: PresentSecret, shape: SecretShape): string {
  const desired = dataOf(shape, secret.data.get('key') ?? '');
  const { labels, annotations } = metadataOf(secret, shape);
  const differences = {
    labels: differ(secret.labels, labels),
    annotations: differ(secret.annotations, annotations),
    owners: secret.owners.length > 0,
    data: fingerprintOf(desired, toUtf8) !== secret.fingerprint,
  };
  return Object.entries(differences)
    .flatMap(([part, differ]) => (differ ? [part] : []))
    .join(', ');
}

const differ = (have: Texts, want: Readonly<Record<string, string | null>>): boolean =>
  Object.entries(want).some(([name, text]) => (ownMember(have, name) ?? null) !== text);

/** Whether the Secret has these labels and annotations, and no owner that the garbage collector looks for. */
export const hasMarks = (secret: PresentSecret, { labels, annotations }: SecretMarks): boolean =>
  secret.owners.length === 0 && !differ(secret.labels, labels) && !differ(secret.annotations, annotations);

/** Whether a resync that finds only the claim takes the Secret for that of the claim's VirtualKey. */
export const isFoundByClaim = (secret: PresentSecret, { metadata: { uid } }: VirtualKey): boolean =>
  hasMarks(secret, { labels: { [OWNED_LABEL]: OWNED_LABEL_VALUE }, annotations: { [KEY_UID_ANNOTATION]: uid } });

/** A key value as it may be shown: its first three and last four characters. */
export const displayOf = (value: string): string =>
  value.includes('...') ? value : `${value.slice(0, 3)}...${value.slice(-4)}`;
