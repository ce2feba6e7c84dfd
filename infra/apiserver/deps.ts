// Parts that requests and controllers work with.
import type { Admission } from './admission/admission.ts';
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

/** The log that the starter of the server passes in. */
export type Log = {
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
};
