// Does an annotation that asks us for something ask for it in a way that is understood?
import { ADOPT_LEDGER_ANNOTATION, DELETION_SHARE_ANNOTATION, ROTATE_ANNOTATION } from '#crds/group.ts';
import type { KindName } from '#crds/kinds.ts';
import { isFreeText } from '#crds/within.ts';
import { parseShare } from '../deletion-share.ts';
import type { Finding } from '../finding.ts';

interface Asking {
  readonly annotation: string;
  readonly isUnderstood: (text: string) => boolean;
  readonly message: string;
}

const rotate: Asking = {
  annotation: ROTATE_ANNOTATION,
  isUnderstood: isFreeText,
  message:
    'asks for no rotation; write 1 to 256 visible characters that it did not say before, e.g. the date: each new text is one rotation',
};

const adoptLedger: Asking = {
  annotation: ADOPT_LEDGER_ANNOTATION,
  isUnderstood: (text) => /^[-0-9A-Za-z]{1,64}( lost)?$/.test(text),
  message:
    'is not the uid of an instance; write metadata.uid of the deleted instance whose keys and spend this one goes on with (and " lost" after it if its whole cluster is gone)',
};

const deletionShare: Asking = {
  annotation: DELETION_SHARE_ANNOTATION,
  isUnderstood: (text) => parseShare(text) !== undefined,
  message:
    'is no share; write whole per cent from "0%" to "100%", or remove it: then a run removes at most "25%" by itself',
};

const ASKINGS: Readonly<Record<KindName, ReadonlyArray<Asking>>> = {
  GatewayInstance: [adoptLedger, deletionShare],
  VirtualKey: [rotate],
  User: [],
  Team: [],
};

/** `textOf` is what an annotation of the object says; undefined where it has none. */
export function judgeAnnotations(kind: KindName, textOf: (annotation: string) => string | undefined): Finding[] {
  return ASKINGS[kind].flatMap(({ annotation, isUnderstood, message }): Finding[] => {
    const value = textOf(annotation);
    if (value === undefined || isUnderstood(value)) return [];
    return [
      { rule: 'InvalidAnnotation', path: `metadata.annotations["${annotation}"]`, value, message, effect: 'refuse' },
    ];
  });
}
