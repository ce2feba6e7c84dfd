// Parts that requests and controllers work with.
import type { Admission } from './admission/admission.ts';
import type { Log } from './log.ts';
import type { Registry } from './resources/registry.ts';
import type { Store } from './store/store.ts';

export type Deps = {
  readonly store: Store;
  readonly registry: Registry;
  readonly admission: Admission;
  readonly log: Log;
  /** Milliseconds since 1970. */
  now(): number;
  newUid(): string;
};
