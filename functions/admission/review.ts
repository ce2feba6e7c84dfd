// What is a review of admission.k8s.io/v1, as it comes and as it is answered?
// Read by hand: the envelope is small, every review has one, and a schema library would be most of a cold start.
import { isMap, type Json } from '#crds/shapes.ts';
import type { Operation } from './json-patch.ts';

const API_VERSION = 'admission.k8s.io/v1';
const LONGEST_WARNING = 256;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;

/** Which of the two webhooks asks. */
export type Verb = 'mutate' | 'validate';

/** As much of a request as we read. null and absent say the same in this API. */
export interface ReviewRequest {
  readonly uid: string;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly operation: (typeof OPERATIONS)[number];
  readonly subResource?: string | null;
  readonly name?: string | null;
  readonly namespace?: string | null;
  readonly dryRun?: boolean | null;
  readonly userInfo?: UserInfo | null;
  readonly object?: unknown;
  readonly oldObject?: unknown;
}

interface UserInfo {
  readonly username?: string | null;
  readonly uid?: string | null;
  readonly groups?: ReadonlyArray<string> | null;
  readonly extra?: Readonly<Record<string, ReadonlyArray<string>>> | null;
}

const isText = (value: unknown): boolean => typeof value === 'string';
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isAbsent = (value: unknown): boolean => value === undefined || value === null;

type Member = readonly [path: string, is: (value: unknown) => boolean, what: string];

const REQUIRED: ReadonlyArray<Member> = [
  ['uid', (uid) => typeof uid === 'string' && uid.length >= 1 && uid.length <= 256, 'a text of 1 to 256 characters'],
  ['kind', (kind) => isMap(kind) && [kind.group, kind.version, kind.kind].every(isText), 'a group, version and kind'],
  ['operation', (operation) => OPERATIONS.some((one) => one === operation), `one of ${OPERATIONS.join(', ')}`],
];

const OPTIONAL: ReadonlyArray<Member> = [
  ['subResource', isText, 'a text'],
  ['name', isText, 'a text'],
  ['namespace', isText, 'a text'],
  ['dryRun', (dryRun) => typeof dryRun === 'boolean', 'true or false'],
  ['userInfo', isMap, 'a map'],
];

const OF_USER: ReadonlyArray<Member> = [
  ['username', isText, 'a text'],
  ['uid', isText, 'a text'],
  ['groups', areTexts, 'a list of texts'],
  ['extra', (extra) => isMap(extra) && Object.values(extra).every(areTexts), 'a map of lists of texts'],
];

export type ReadReview =
  | { readonly ok: true; readonly request: ReviewRequest }
  | { readonly ok: false; readonly problem: string };

/** The request of a review, or what is wrong with the envelope. What is inside `object` is judged later. */
export function readReview(body: Uint8Array): ReadReview {
  let json: unknown;
  try {
    json = JSON.parse(UTF_8.decode(body));
  } catch (error) {
    const why = error instanceof SyntaxError ? 'is not JSON' : 'is not UTF-8';
    return { ok: false, problem: body.length === 0 ? 'the body is empty' : `the body ${why}` };
  }
  const problems: string[] = [];
  if (isReview(json, problems)) return { ok: true, request: json.request };
  return { ok: false, problem: `the body is not an AdmissionReview of ${API_VERSION}: ${problems.join('; ')}` };
}

/** Adds what is wrong. */
function isReview(json: unknown, problems: string[]): json is { readonly request: ReviewRequest } {
  if (!isMap(json)) problems.push('the body: is not a map');
  else if (json.apiVersion !== API_VERSION) problems.push(`apiVersion: is not ${API_VERSION}`);
  else if (json.kind !== 'AdmissionReview') problems.push('kind: is not AdmissionReview');
  else if (!isMap(json.request)) problems.push('request: is not a map');
  else {
    const { request } = json;
    for (const [name, is, what] of REQUIRED) if (!is(request[name])) problems.push(`request.${name}: is not ${what}`);
    addWrong(OPTIONAL, request, 'request', problems);
    if (isMap(request.userInfo)) addWrong(OF_USER, request.userInfo, 'request.userInfo', problems);
  }
  return problems.length === 0;
}

function addWrong(members: ReadonlyArray<Member>, map: Json, path: string, problems: string[]): void {
  for (const [name, is, what] of members)
    if (!isAbsent(map[name]) && !is(map[name])) problems.push(`${path}.${name}: is not ${what}`);
}

export type Answer =
  | { readonly allowed: true; readonly warnings: ReadonlyArray<string>; readonly patch: ReadonlyArray<Operation> }
  | { readonly allowed: false; readonly warnings: ReadonlyArray<string>; readonly message: string };

/**
 * Exactly what the API server takes: the same uid; `patch` and `patchType` together or not at all (an empty patch is
 * none); a denial with 422, because clients retry a 409 for seconds, and `Forbidden`, because `kubectl edit` says only of what is
 * invalid, as a 422 without a reason is, that it is.
 */
export function toReview(uid: string, answer: Answer) {
  const warnings = answer.warnings.flatMap(toWarnings);
  return {
    apiVersion: API_VERSION,
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: answer.allowed,
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(answer.allowed
        ? patchOf(answer.patch)
        : { status: { code: 422, reason: 'Forbidden', message: answer.message } }),
    },
  };
}

function patchOf(patch: ReadonlyArray<Operation>) {
  return patch.length === 0 ? {} : { patchType: 'JSONPatch', patch: toBase64(JSON.stringify(patch)) };
}

/** Without `Buffer`, which Workers lack; in pieces, because a call takes only so many arguments. */
function toBase64(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let binary = '';
  for (let start = 0; start < bytes.length; start += 8192) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 8192));
  }
  return btoa(binary);
}

/** One line each and at most 256 characters, as the API asks for: a longer one goes on in the next, at a blank. */
function toWarnings(text: string): string[] {
  if (text.length <= LONGEST_WARNING && !/[\r\n]/.test(text)) return text.trim() === '' ? [] : [text.trim()];
  return text.split(/[\r\n]+/).flatMap((line) => {
    const lines: string[] = [];
    let rest = [...line.trim()];
    while (rest.length > LONGEST_WARNING) {
      const blank = rest.lastIndexOf(' ', LONGEST_WARNING);
      const end = blank > LONGEST_WARNING / 2 ? blank : LONGEST_WARNING;
      lines.push(rest.slice(0, end).join('').trim());
      rest = rest.slice(end);
    }
    return [...lines, rest.join('').trim()].filter((part) => part !== '');
  });
}
