// Access reviews (`kubectl auth can-i`): the holder of the token may do everything.
import { timestamp } from '../object.ts';
import type { User } from '../request/request.ts';
import { isObject, type JsonObject } from '../schema/json.ts';

export type AccessReview = {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  answer(user: User): JsonObject;
};

const everything = 'this API server does not enforce RBAC: it allows everything to the holder of its token';
const allowed = () => ({ allowed: true, reason: everything });

const authorization = { group: 'authorization.k8s.io', namespaced: false };

/** Kinds that are only created: answered immediately, never stored. */
export const accessReviews: readonly AccessReview[] = [
  { ...authorization, plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview', answer: allowed },
  { ...authorization, plural: 'subjectaccessreviews', kind: 'SubjectAccessReview', answer: allowed },
  {
    ...authorization,
    plural: 'selfsubjectrulesreviews',
    kind: 'SelfSubjectRulesReview',
    answer: () => ({
      resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
      nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
      incomplete: false,
    }),
  },
  {
    group: 'authentication.k8s.io',
    plural: 'selfsubjectreviews',
    kind: 'SelfSubjectReview',
    namespaced: false,
    answer: (user) => ({ userInfo: user }),
  },
];

export function findReview(
  path: Pick<AccessReview, 'group' | 'plural'> & { version: string },
): AccessReview | undefined {
  if (path.version !== 'v1') return undefined;
  return accessReviews.find(({ group, plural }) => group === path.group && plural === path.plural);
}

/** The review as it was sent, with its status. */
export function answerReview(kind: AccessReview, review: JsonObject, asker: { user: User; now: number }): JsonObject {
  const metadata = isObject(review.metadata) ? review.metadata : {};
  return {
    kind: kind.kind,
    apiVersion: `${kind.group}/v1`,
    metadata: { creationTimestamp: timestamp(asker.now), ...metadata },
    ...(review.spec !== undefined && { spec: review.spec }),
    status: kind.answer(asker.user),
  };
}
