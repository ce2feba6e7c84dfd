// What is a rule? A small function from what is judged to its findings.
import type { Finding } from '#core/finding.ts';
import type { Lookup } from './lookup.ts';
import type { Subject } from './subject.ts';

/** Judges the object alone. Total: meets objects that the schema refuses. */
export type AloneCheck = (subject: Subject) => ReadonlyArray<Finding>;

/** Judges the object with what it refers to. */
export type Check = (subject: Subject, lookup: Lookup) => Promise<ReadonlyArray<Finding>>;
