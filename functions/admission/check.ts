// A check: a pure function from an object and the facts about what it refers to, to findings.
import type { Finding } from '#core/rules/finding.ts';
import type { DidYouMean } from '#core/rules/nearest-name.ts';
import type { Metadata, StoredSpend } from './subject.ts';

export interface CheckedObject<Spec> {
  readonly metadata: Metadata;
  /** The spec as the schema reads it, defaults included. */
  readonly spec: Spec;
  /** The stored spec, on update; read on first use. */
  readonly old: () => Spec | undefined;
  /** The spends in the status of the stored object. */
  readonly spends: ReadonlyArray<StoredSpend>;
}

/** `other`: the spec of the other version (`FactContext`), read on first use. */
export interface ComparedObject<Spec> extends CheckedObject<Spec> {
  readonly other: () => Spec | undefined;
}

export interface CheckInput<Spec, Facts = unknown> extends CheckedObject<Spec> {
  readonly didYouMean: DidYouMean;
  readonly facts: Facts;
}

export type Check<Spec, Facts = unknown> = (input: CheckInput<Spec, Facts>) => ReadonlyArray<Finding>;
