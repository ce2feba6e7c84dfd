// Do two entries of the instance share one credential Secret?
import { sharedCredentials as judgeCredentials } from '#core/rules/shared-credentials.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/group.ts';
import type { AloneCheck } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';
import { annotationOf, type Draft } from '../subject.ts';

export const sharedCredentials: AloneCheck = ({ object, old }) =>
  judgeCredentials(
    modelsOf(object),
    annotationOf(object, SHARED_CREDENTIALS_ANNOTATION),
    old === undefined ? [] : modelsOf(old),
  );

const modelsOf = (draft: Draft) => toView(InstanceView, draft.spec).models;
