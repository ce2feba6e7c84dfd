// Access reviews (`kubectl auth can-i`): answered and never stored. The holder of the token may do everything.
import type { Strategy } from '../resource.ts';

const reason = 'this API server does not enforce RBAC: it allows everything to the holder of its token';

export const accessReview: Strategy = { answer: () => ({ allowed: true, reason }) };

export const rulesReview: Strategy = {
  answer: () => ({
    resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
    nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
    incomplete: false,
  }),
};

export const userReview: Strategy = { answer: (user) => ({ userInfo: user }) };
