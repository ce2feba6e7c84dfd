// The AdmissionReview of admission.k8s.io/v1: its request and its response.
import * as z from 'zod';
import { ok, type Result } from '#core/failure/result.ts';
import { toBase64 } from '#core/json/base64.ts';
import { type MalformedReview, malformedReview } from './body.ts';

const API_VERSION = 'admission.k8s.io/v1';
const MAX_WARNING = 256;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** The path that the API server calls, and the value of the label `verb` in metrics. */
export type Verb = 'mutate' | 'validate';

const OptionalText = z.string().nullish();

/** The members of a review that are read. In this API null means absent. */
const Review = z.object({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal('AdmissionReview'),
  request: z.object({
    uid: z.string().min(1).max(256),
    kind: z.object({ group: z.string(), version: z.string(), kind: z.string() }),
    operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
    subResource: OptionalText,
    name: OptionalText,
    namespace: OptionalText,
    dryRun: z.boolean().nullish(),
    userInfo: z
      .object({
        username: OptionalText,
        uid: OptionalText,
        groups: z.array(z.string()).nullish(),
        extra: z.record(z.string(), z.array(z.string())).nullish(),
      })
      .nullish(),
    object: z.unknown().optional(),
    oldObject: z.unknown().optional(),
  }),
});
export type ReviewRequest = z.output<typeof Review>['request'];
export type RequestHead = Omit<ReviewRequest, 'object' | 'oldObject'>;

/** The request of a review, or what is wrong with the body. The content of `object` is validated later. */
export function readReview(body: Uint8Array): Result<ReviewRequest, MalformedReview> {
  let json: unknown;
  try {
    json = JSON.parse(UTF_8.decode(body));
  } catch (error) {
    return malformedReview(`the body is not ${error instanceof SyntaxError ? 'JSON' : 'UTF-8'}`);
  }
  const { success, data, error } = Review.safeParse(json);
  if (success) return ok(data.request);
  const problems = error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return malformedReview(`the body is not an AdmissionReview of ${API_VERSION}: ${problems.join('; ')}`);
}

/** One step of a JSON patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

export interface ReviewResponse {
  /** Why the object is refused. Undefined: it is accepted. */
  readonly refusal?: string | undefined;
  readonly warnings?: ReadonlyArray<string>;
  /** The defaults of an accepted object. */
  readonly patch?: ReadonlyArray<PatchOperation>;
}

/**
 * The review in the form that the API server accepts: the same uid; `patch` and `patchType` together or not at all (an
 * empty patch is left out). A refusal has code 422, because clients retry a 409 for seconds; and the reason
 * `Forbidden`, because `kubectl edit` shows no message of a 422 without a reason.
 */
export function toReview(uid: string, { refusal, warnings = [], patch = [] }: ReviewResponse) {
  const lines = warnings.flatMap(toLines);
  return {
    apiVersion: API_VERSION,
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: refusal === undefined,
      ...(lines.length === 0 ? {} : { warnings: lines }),
      ...(refusal === undefined ? patchOf(patch) : { status: { code: 422, reason: 'Forbidden', message: refusal } }),
    },
  };
}

const patchOf = (patch: ReadonlyArray<PatchOperation>) =>
  patch.length === 0 ? {} : { patchType: 'JSONPatch', patch: toBase64(JSON.stringify(patch)) };

/**
 * Lines of at most 256 characters, as the API requires: a longer warning is split at a blank and continues in the next
 * line.
 */
function toLines(warning: string): string[] {
  const lines: string[] = [];
  let rest = [...warning.replaceAll(/[\r\n]+/g, ' ').trim()];
  while (rest.length > MAX_WARNING) {
    const blank = rest.lastIndexOf(' ', MAX_WARNING);
    const end = blank > MAX_WARNING / 2 ? blank : MAX_WARNING;
    lines.push(rest.slice(0, end).join('').trim());
    rest = rest.slice(end);
  }
  return [...lines, rest.join('').trim()].filter((line) => line !== '');
}
