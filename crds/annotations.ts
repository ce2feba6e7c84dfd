// Which annotations do people write, on which objects, and what do they ask for? Shown in docs/reference.md.
import {
  ADOPT_LEDGER_ANNOTATION,
  APPLIED_ANNOTATION,
  CONNECTIONS_ANNOTATION,
  DELETION_SHARE_ANNOTATION,
  REQUESTED_BY_ANNOTATION,
  ROTATE_ANNOTATION,
  SHARED_CREDENTIALS_ALLOWED,
  SHARED_CREDENTIALS_ANNOTATION,
  SNAPSHOT_ANNOTATION,
  VERSION_ANNOTATION,
} from './group.ts';
import type { KindName } from './kinds.ts';

export interface Asking {
  readonly annotation: string;
  /** Where it is not the object itself. */
  readonly on?: string;
  readonly value: string;
  readonly meaning: string;
}

export const ASKED_BY_ANNOTATION: Readonly<Record<KindName, ReadonlyArray<Asking>>> = {
  GatewayInstance: [
    {
      annotation: SHARED_CREDENTIALS_ANNOTATION,
      value: `\`${SHARED_CREDENTIALS_ALLOWED}\``,
      meaning: 'Two entries of `models` may share one credential Secret.',
    },
    {
      annotation: DELETION_SHARE_ANNOTATION,
      value: '`0%` to `100%`',
      meaning: 'How much of the instance a run may remove by itself. Without it: `25%`, and at least ten keys.',
    },
    {
      annotation: ADOPT_LEDGER_ANNOTATION,
      value: 'a uid, with ` lost` after it where its whole cluster is gone',
      meaning: 'The closed instance whose keys and spend this one goes on with. It happens once.',
    },
  ],
  VirtualKey: [
    {
      annotation: ROTATE_ANNOTATION,
      value: '1 to 256 visible characters',
      meaning: 'Each new text asks for a new value at once; the old one works during `rotation.overlap`.',
    },
  ],
  User: [],
  Team: [],
};

/** What the operator itself writes, and nobody else has to. */
export const WRITTEN_BY_US: ReadonlyArray<string> = [
  APPLIED_ANNOTATION,
  VERSION_ANNOTATION,
  SNAPSHOT_ANNOTATION,
  CONNECTIONS_ANNOTATION,
  REQUESTED_BY_ANNOTATION,
];
