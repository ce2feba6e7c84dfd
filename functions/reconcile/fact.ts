// What can a run learn from what it did, or foresees? Plain data: told by act and foresee, taken in by learn.
import type { Nano } from '#core/money.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim, Holder, InstanceState, LiveValue } from '#core/ports/registry.ts';
import type { KindName } from '#crds/kinds.ts';
import type { Problem } from './problem.ts';
import type { PartName } from './workload/parts.ts';
import type { PartView } from './workload/wanted.ts';
import type { KeyView, Path, SecretView } from './world.ts';

export type Fact =
  /** An object of ours as it is now. A key's Secrets stay as they were seen. */
  | { readonly fact: 'object'; readonly object: KubeObject }
  | {
      readonly fact: 'gone';
      readonly kind: KindName;
      readonly at: { readonly namespace: string; readonly name: string };
    }
  /** A key with its Secret, looked at anew. */
  | { readonly fact: 'key'; readonly view: KeyView }
  | { readonly fact: 'secret'; readonly key: Path; readonly which: 'secret' | 'previous'; readonly view: SecretView }
  | {
      readonly fact: 'opened';
      readonly instance: Path;
      readonly time: Millis;
      readonly adopted?: InstanceState['adopted'];
      readonly claims: ReadonlyMap<string, Claim>;
      readonly sums: ReadonlyMap<string, Nano>;
    }
  | { readonly fact: 'closed'; readonly instance: Path }
  | { readonly fact: 'strayClosed'; readonly instance: Path; readonly uid: string }
  | { readonly fact: 'unreachable'; readonly instance: Path; readonly reason: string; readonly message: string }
  | { readonly fact: 'claim'; readonly instance: Path; readonly key: string; readonly claim: Claim }
  | { readonly fact: 'taken'; readonly instance: Path; readonly key: string; readonly by: Holder }
  | { readonly fact: 'retired'; readonly instance: Path; readonly key: string }
  /** All values of a claim as they are now. */
  | {
      readonly fact: 'values';
      readonly instance: Path;
      readonly key: string;
      readonly values: ReadonlyArray<LiveValue>;
    }
  /** All claims, read again because something was not as planned. */
  | { readonly fact: 'claims'; readonly instance: Path; readonly claims: ReadonlyMap<string, Claim> }
  | {
      readonly fact: 'policy';
      readonly instance: Path;
      readonly key: string;
      readonly policy: NonNullable<Claim['policy']>;
    }
  | { readonly fact: 'sums'; readonly instance: Path; readonly sums: ReadonlyMap<string, Nano> }
  | { readonly fact: 'valueRefused'; readonly key: Path; readonly hash: string }
  | { readonly fact: 'published'; readonly instance: Path }
  | { readonly fact: 'unpublished'; readonly instance: Path; readonly snapshot: string }
  /** A part of what runs the gateway as it is now. */
  | { readonly fact: 'part'; readonly instance: Path; readonly part: PartName; readonly view: PartView }
  | { readonly fact: 'workloadRefused'; readonly instance: Path; readonly problem: Problem };
