// Readers of the environment's texts, and the variables that functions read alike wherever they run.
import { parseJson } from '#core/json/json.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { RELEASE_IMAGE } from './release.ts';
import { converted, matching, oneOf, withDefault } from './variable.ts';

export const port = converted(
  (text) => (/^[0-9]{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
  'is not a port',
);
const toList = (text: string): ReadonlyArray<string> =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
export const list = converted(toList, 'is not a list');
const DOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
export const domains = converted((text) => {
  const parts = toList(text);
  return parts.every((part) => part.length <= 253 && DOMAIN.test(part)) ? parts : undefined;
}, 'is not a list of domains, as in example.com,example.org');
const unguessable = (part: string) =>
  converted((text) => {
    const parts = toList(text);
    return parts.length > 0 && parts.every((part) => /^[-._~A-Za-z0-9]{16,128}$/.test(part)) ? parts : undefined;
  }, `needs 16 to 128 letters, digits, -, ., _ or ~ in each ${part}`);
export const segments = unguessable('segment');
/** Segments that a webhook's reference to a Service may have. */
export const serviceSegments = converted((text) => {
  const parts = toList(text);
  return parts.length > 0 && parts.every((part) => /^[a-z0-9][-.a-z0-9]{14,126}[a-z0-9]$/.test(part))
    ? parts
    : undefined;
}, 'needs 16 to 128 lowercase letters, digits, - or . in each segment');
/** Tokens of reconcile: triggers are sent with the first, and accepted with any. */
export const tokens = unguessable('token');
const address = (protocol: RegExp, problem: string) =>
  converted((text) => (URL.canParse(text) && protocol.test(new URL(text).protocol) ? text : undefined), problem);
export const httpAddress = address(/^https?:$/, 'is not an http:// or https:// address');
export const httpsAddress = address(/^https:$/, 'is not an https:// address');
export const namespace = matching(/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/, 'is not the name of a namespace');
export const namespacedName = converted((text) => {
  const [, namespace, name] =
    /^([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\/([a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$/.exec(text) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}, 'is not NAMESPACE/NAME');
export const instancePath = matching(
  /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?$/,
  'is not NAMESPACE/NAME of an instance',
);
export const count = converted(
  (text) => (/^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : undefined),
  'is not a number from 1',
);
export const retention = converted((text): number | 'forever' | undefined => {
  if (text === 'forever') return text;
  return /^[1-9][0-9]{1,4}$/.test(text) && Number(text) >= 30 ? Number(text) : undefined;
}, 'is neither a number of days, at least 30, nor `forever`');

/** Where ledger rows are archived: a bucket of S3, or a folder. */
export type ArchiveAddress =
  | { readonly type: 'bucket'; readonly url: string; readonly bucket: string; readonly prefix: string }
  | { readonly type: 'folder'; readonly url: string };

/** A prefix of letters that need no escape: clients of S3 escape the others in different ways. */
const BUCKET = /^s3:\/\/([a-z0-9][-.a-z0-9]{1,61}[a-z0-9])((?:\/[-._A-Za-z0-9=]+)*)\/?$/;
export const archiveAddress = converted((text): ArchiveAddress | undefined => {
  const [, bucket, prefix = ''] = BUCKET.exec(text) ?? [];
  if (bucket !== undefined) return { type: 'bucket', url: `s3://${bucket}${prefix}`, bucket, prefix: prefix.slice(1) };
  return /^file:\/\/\/[^?#%]*[^?#%/]\/?$/.test(text) ? { type: 'folder', url: text.replace(/\/$/, '') } : undefined;
}, 'is neither s3://BUCKET/PREFIX, with letters, digits, -, ., _ and = in the prefix, nor file:///FOLDER');

/** A JSON array of Kubernetes objects. */
export const objects = converted((text) => {
  const json: unknown = parseJson(text);
  return Array.isArray(json) && json.every(isObject) ? json : undefined;
}, 'is not a JSON array of Kubernetes objects');
const isObject = (json: unknown): json is KubeObject =>
  isMap(json) && typeof json.kind === 'string' && isMap(json.metadata) && typeof json.metadata.name === 'string';

export const share = converted(
  (text) => (/^(0|1|0?\.[0-9]+|1\.0+)$/.test(text) ? Number(text) : undefined),
  'is not a share from 0 to 1',
);

export const processes = withDefault(oneOf('one', 'many'), 'many');
export const image = withDefault(matching(/^[^\p{Z}\p{C}]+$/u, 'is not the name of an image'), RELEASE_IMAGE);
