// Rules of metadata, in the words of the real server.
import type { KubeObject, ObjectMeta } from '../object.ts';
import type { Resource } from '../resource.ts';
import { type Cause, forbidden, invalid, required, tooLong } from '../schema/field-errors.ts';

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const subdomainMessage =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const labelMessage =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const labelValueMessage =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const keyName = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const keyNameMessage =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/** The causes against an object's metadata; on update also what may not change any more. */
export function metadataCauses(resource: Resource, object: KubeObject, old?: KubeObject): Cause[] {
  const { metadata } = object;
  return [
    ...(old === undefined ? nameCauses(resource, metadata) : changeCauses(metadata, old.metadata)),
    ...labelCauses(metadata),
    ...annotationCauses(metadata),
    ...ownerCauses(metadata),
    ...finalizerCauses(metadata),
  ];
}

function nameCauses(resource: Resource, { name, generateName }: ObjectMeta): Cause[] {
  if (name === undefined || name === '') {
    return generateName ? [] : [required('metadata.name', 'name or generateName is required')];
  }
  return wrongName(resource, name).map((why) => invalid('metadata.name', name, why));
}

function wrongName({ nameRule }: Resource, name: string): string[] {
  if (nameRule === 'path') {
    if (name === '.' || name === '..') return [`may not be '${name}'`];
    return ['/', '%'].filter((char) => name.includes(char)).map((char) => `may not contain '${char}'`);
  }
  const [pattern, message, max] = nameRule === 'label' ? [label, labelMessage, 63] : [subdomain, subdomainMessage, 253];
  return [
    ...(name.length > max ? [`must be no more than ${max} characters`] : []),
    ...(pattern.test(name) ? [] : [message]),
  ];
}

function labelCauses({ labels = {} }: ObjectMeta): Cause[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...wrongKey(key).map((why) => invalid('metadata.labels', key, why)),
    ...wrongLabelValue(value).map((why) => invalid('metadata.labels', value, why)),
  ]);
}

function wrongLabelValue(value: string): string[] {
  return [
    ...(value.length > 63 ? ['must be no more than 63 characters'] : []),
    ...(labelValue.test(value) ? [] : [labelValueMessage]),
  ];
}

function wrongKey(key: string): string[] {
  const slash = key.indexOf('/');
  const [prefix, name] = slash === -1 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)];
  if (prefix === '') return ['prefix part must be non-empty'];
  if (prefix !== undefined && !subdomain.test(prefix)) return [`prefix part ${subdomainMessage}`];
  if (name === '') return ['name part must be non-empty', keyNameMessage];
  return [
    ...(name.length > 63 ? ['name part must be no more than 63 characters'] : []),
    ...(keyName.test(name) ? [] : [keyNameMessage]),
  ];
}

function annotationCauses({ annotations = {} }: ObjectMeta): Cause[] {
  const keys = Object.keys(annotations).flatMap((key) => {
    return wrongKey(key.toLowerCase()).map((why) => invalid('metadata.annotations', key, why));
  });
  const entries = Object.entries(annotations);
  const bytes = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key + value), 0);
  return bytes <= maxBytes ? keys : [...keys, tooLong('metadata.annotations', maxBytes)];
}

/** The limit of all annotations together. */
const maxBytes = 256 * 1024;

function ownerCauses({ ownerReferences = [] }: ObjectMeta): Cause[] {
  const empty = ownerReferences.flatMap((reference) => {
    const missing = (['apiVersion', 'kind', 'name', 'uid'] as const).filter((member) => !reference[member]);
    return missing.map((member) => invalid(`metadata.ownerReferences.${member}`, '', 'must not be empty'));
  });
  const controllers = ownerReferences.filter(({ controller }) => controller === true);
  if (controllers.length < 2) return empty;
  const [first, second] = controllers;
  const words = `Only one reference can have Controller set to true. Found "true" in references for ${first?.kind}/${first?.name} and ${second?.kind}/${second?.name}`;
  return [...empty, invalid('metadata.ownerReferences', null, words)];
}

function finalizerCauses({ finalizers = [] }: ObjectMeta): Cause[] {
  return finalizers.flatMap((one) => wrongKey(one).map((why) => invalid('metadata.finalizers', one, why)));
}

function changeCauses(now: ObjectMeta, before: ObjectMeta): Cause[] {
  const causes: Cause[] = [];
  if (now.uid !== before.uid) causes.push(invalid('metadata.uid', now.uid, 'field is immutable'));
  const added = (now.finalizers ?? []).filter((one) => !(before.finalizers ?? []).includes(one));
  if (before.deletionTimestamp !== undefined && added.length > 0) {
    const found = `[]string{${added.map((one) => JSON.stringify(one)).join(', ')}}`;
    const words = `no new finalizers can be added if the object is being deleted, found new finalizers ${found}`;
    causes.push(forbidden('metadata.finalizers', words));
  }
  return causes;
}
