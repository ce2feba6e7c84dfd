// Does an annotation that asks us for something ask for it in a way that is understood?
import { judgeAnnotations } from '#core/rules/annotations.ts';
import type { AloneCheck } from '../check.ts';
import { annotationOf } from '../subject.ts';

export const annotations: AloneCheck = ({ kind, object }) =>
  judgeAnnotations(kind.kind, (annotation) => annotationOf(object, annotation));
