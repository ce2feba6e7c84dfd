// What is a review of admission.k8s.io/v1, as it comes and as it is answered?
import * as z from 'zod';
import type { Operation } from './json-patch.ts';

const API_VERSION = 'admission.k8s.io/v1';
const LONGEST_WARNING = 256;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** null and absent say the same in this API. */
const optional = <S extends z.ZodType>(schema: S) => schema.nullish().transform((value) => value ?? undefined);

const UserInfo = z.object({
  username: z.string().default(''),
  uid: optional(z.string()),
  groups: optional(z.array(z.string())),
  extra: optional(z.record(z.string(), z.array(z.string()))),
});

export const Review = z.object({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal('AdmissionReview'),
  request: z.object({
    uid: z.string().min(1).max(256),
    kind: z.object({ group: z.string(), version: z.string(), kind: z.string() }),
    subResource: optional(z.string()),
    name: optional(z.string()),
    namespace: optional(z.string()),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    userInfo: optional(UserInfo),
    object: z.unknown().default(null),
    oldObject: z.unknown().default(null),
    dryRun: optional(z.boolean()),
  }),
});
export type ReviewRequest = z.output<typeof Review>['request'];

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
  const parsed = Review.safeParse(json);
  if (parsed.success) return { ok: true, request: parsed.data.request };
  const issues = parsed.error.issues
    .slice(0, 5)
    .map(({ path, message }) => `${path.join('.') || 'the body'}: ${message}`);
  return { ok: false, problem: `the body is not an AdmissionReview of ${API_VERSION}: ${issues.join('; ')}` };
}

export type Answer =
  | { readonly allowed: true; readonly warnings: ReadonlyArray<string>; readonly patch: ReadonlyArray<Operation> }
  | { readonly allowed: false; readonly warnings: ReadonlyArray<string>; readonly message: string };

/**
 * Exactly what the API server takes: the same uid; `patch` and `patchType` together or not at all (an empty patch is
 * none); a denial with 422, because clients retry a 409 for seconds.
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
      ...(answer.allowed ? patchOf(answer.patch) : { status: { code: 422, message: answer.message } }),
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
