// What happened to an object that people should be told? Read off the change of its status, so that nothing is told twice.
import type { Condition } from '#crds/fragments.ts';
import type { Action } from '../action.ts';
import type { OwnObject } from '../world.ts';
import { tell } from './tell.ts';

interface Told {
  readonly conditions?: ReadonlyArray<Condition> | undefined;
  readonly keyID?: string | undefined;
  readonly keySecretRef?: string | undefined;
}

/** A new value beside one that works on. */
export interface NewKey {
  readonly reason: 'KeyRotated';
  readonly message: string;
}

/** One event for a new key, one whenever Ready turns or has another reason. Their names make a second run tell nothing more. */
export function planEvents(
  object: Pick<OwnObject, 'kind' | 'metadata' | 'status'>,
  status: object,
  newKey?: NewKey,
): Action[] {
  const [before, after]: [Told, Told] = [object.status ?? {}, status];
  const [was, is] = [readyOf(before), readyOf(after)];
  const events: Action[] = [];
  if (after.keyID !== undefined && after.keyID !== before.keyID) {
    const reason = newKey?.reason ?? 'KeyCreated';
    const message =
      before.keyID === undefined
        ? `the key is in Secret "${after.keySecretRef}"`
        : `a new key is in Secret "${after.keySecretRef}": ${newKey?.message ?? 'the one before works no more'}`;
    events.push(tell(object, { type: 'Normal', reason, message, once: `${reason}/${after.keyID}` }));
  }
  if (is !== undefined && (was?.status !== is.status || was.reason !== is.reason)) {
    const once = `${is.reason}/${was?.reason ?? ''}/${was?.lastTransitionTime ?? ''}/${object.metadata.generation}`;
    const type = is.status === 'True' ? 'Normal' : 'Warning';
    events.push(tell(object, { type, reason: is.reason, message: inOneLine(is.message), once }));
  }
  return events;
}

/** Lists of events are tables: `- a`, `- b` below each other in a condition is `(1) a (2) b` in a row. */
function inOneLine(message: string): string {
  const lines = message.split('\n');
  if (lines.length === 1) return message;
  return lines.map((line, index) => `(${index + 1}) ${line.replace(/^- /, '')}`).join(' ');
}

const readyOf = ({ conditions }: Told) => conditions?.find(({ type }) => type === 'Ready');
