// Annotations of the custom resources: the form and the effect of those that people write. An annotation that is not in this file
// reads as absent, and code that names it does not compile. docs/reference/fields.md shows the table.

import { isFreeText } from '../validation/units.ts';
import type { Violation } from '../validation/violation.ts';
import {
  ADOPT_LEDGER_ANNOTATION,
  DELETION_SHARE_ANNOTATION,
  REQUESTED_BY_ANNOTATION,
  ROTATE_ANNOTATION,
  SHARED_CREDENTIALS_ALLOWED,
  SHARED_CREDENTIALS_ANNOTATION,
} from './group.ts';
import type { KindName } from './resources.ts';

export interface Annotation {
  readonly name: string;
  /** The form of the value, for people. */
  readonly value: string;
  readonly meaning: string;
  /** The rule of the value. Without one every text is accepted, and only the one in `value` has an effect. */
  readonly rule?: { readonly isMet: (text: string) => boolean; readonly message: string };
}

const TABLE = {
  GatewayInstance: [
    {
      name: SHARED_CREDENTIALS_ANNOTATION,
      value: `\`${SHARED_CREDENTIALS_ALLOWED}\``,
      meaning: 'Two model entries may share one credential Secret.',
    },
    {
      name: DELETION_SHARE_ANNOTATION,
      value: '`0%` to `100%`',
      meaning: 'How much of the instance a run may remove by itself. Without it: `25%`, and at least ten keys.',
      rule: {
        isMet: (text) => /^(\d{1,2}|0\d\d|100)%$/.test(text),
        message: 'must be a whole per cent from "0%" to "100%"; remove it for the default, "25%"',
      },
    },
    {
      name: ADOPT_LEDGER_ANNOTATION,
      value: 'a uid, with ` lost` after it if its whole cluster is gone',
      meaning: 'The closed instance whose keys and spend this one continues with. It happens once.',
      rule: {
        isMet: (text) => /^[-0-9A-Za-z]{1,64}( lost)?$/.test(text),
        message:
          'must be the uid of a deleted instance, with " lost" after it if its whole cluster is gone; write its metadata.uid',
      },
    },
  ],
  VirtualKey: [
    {
      name: ROTATE_ANNOTATION,
      value: '1 to 256 visible characters',
      meaning: 'Each new text asks for a new value immediately; the old one works during `rotation.overlap`.',
      rule: {
        isMet: isFreeText,
        message: 'must be 1 to 256 visible characters; write a text that it did not have before, e.g. the date',
      },
    },
  ],
  User: [],
  Team: [],
} as const satisfies Readonly<Record<KindName, ReadonlyArray<Annotation>>>;

export const ANNOTATIONS: Readonly<Record<KindName, ReadonlyArray<Annotation>>> = TABLE;

/** The name of an annotation that code may read: one of the table, or one that the operator writes. */
export type AnnotationName = (typeof TABLE)[KindName][number]['name'] | typeof REQUESTED_BY_ANNOTATION;

export const ANNOTATION_NAMES: ReadonlyArray<string> = [
  REQUESTED_BY_ANNOTATION,
  ...Object.values(ANNOTATIONS).flatMap((all) => all.map(({ name }) => name)),
];

/** Violations of an object's annotations. A value that is not a string reads as absent. */
export function findAnnotationViolations(kind: KindName, written: Readonly<Record<string, unknown>>): Violation[] {
  return ANNOTATIONS[kind].flatMap(({ name, rule }): Violation[] => {
    const value = Object.hasOwn(written, name) ? written[name] : undefined;
    if (rule === undefined || typeof value !== 'string' || rule.isMet(value)) return [];
    const path = `metadata.annotations[${JSON.stringify(name)}]`;
    return [{ rule: 'InvalidAnnotation', type: 'Invalid value', path, value, message: rule.message }];
  });
}
