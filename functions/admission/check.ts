// What is a rule? A small function from what is judged to its findings.
import type { Finding } from '#core/finding.ts';
import type { Lookup } from './lookup.ts';
import type { Subject } from './subject.ts';

/** At once, where nothing has to be asked: most objects are good, and are answered without waiting for anything. */
export type Found = ReadonlyArray<Finding> | Promise<ReadonlyArray<Finding>>;

/** Judges the object alone. Total: meets objects that the schema refuses. */
export type AloneCheck = (subject: Subject) => Found;

/** Judges the object with what it refers to. */
export type Check = (subject: Subject, lookup: Lookup) => Found;
